package planted

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Apply returns the changed files of the project at root, by their names from
// the root. Each change must fit at exactly one place.
func (b Bug) Apply(root string) (map[string]string, error) {
	files := make(map[string]string)
	var problems []error
	for _, c := range b.Changes {
		source, ok := files[c.File]
		if !ok {
			content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.File)))
			if err != nil {
				return nil, err
			}
			source = string(content)
		}
		changed, err := c.apply(source)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", c.File, err))
		}
		files[c.File] = changed
	}
	return files, errors.Join(problems...)
}

// apply returns source with the change. The lines of source must contain c.Old
// once.
func (c Change) apply(source string) (string, error) {
	begun := "\n" + source // so that the first line also follows the end of a line
	if n := strings.Count(begun, "\n"+c.Old); n != 1 {
		return source, fmt.Errorf("%d places have these lines, want 1:\n%s", n, c.Old)
	}
	return strings.Replace(begun, "\n"+c.Old, "\n"+c.New, 1)[1:], nil
}

// Overlay writes the changed files to the folder temp, and a file for the flag
// -overlay of the go command. It returns the name of the latter.
func (b Bug) Overlay(root, temp string) (string, error) {
	files, err := b.Apply(root)
	if err != nil {
		return "", err
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string, len(files))
	for name, content := range files {
		changed := filepath.Join(temp, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(changed, []byte(content), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(root, filepath.FromSlash(name))] = changed
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	list := filepath.Join(temp, "overlay.json")
	return list, os.WriteFile(list, content, 0o600)
}
