package findings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/cric-talk/guards/internal/testkit"
)

// A Page is a document about saved results. They are in a folder beside it, which has its name.
type Page struct {
	File  string // from the root of the project, as each name here
	Text  string // a template, whose functions have the names of the methods of view
	Parts []Part

	// Also returns other files that show figures. It gets the root, and the folder of
	// the saved results. Nil: there are none.
	Also func(root, folder string) (map[string][]byte, error)
}

// A Part is what one proof or one measurement finds.
type Part struct {
	Name    string
	Command string   // finds the figures again
	Sources []string // the folders with the code that the figures are about
}

// Part returns the part with this name.
func (p Page) Part(name string) (Part, error) {
	names := make([]string, len(p.Parts))
	for i, part := range p.Parts {
		if names[i] = part.Name; part.Name == name {
			return part, nil
		}
	}
	return Part{}, fmt.Errorf("%s has no part %q; its parts are %s", p.File, name, strings.Join(names, ", "))
}

// Save saves what a part has found in a folder; empty: nowhere. It prints the result,
// and fails the test if a goal is missed or if there is no such part.
func (p Page) Save(t testing.TB, name, folder string, r Result) {
	t.Helper()
	part, err := p.Part(name)
	if err != nil {
		t.Fatal(err)
	}
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	s := New(r, part.Command)
	if s.Sources, err = Hash(root, part.Sources); err != nil {
		t.Fatal(err)
	}
	content, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", content)
	for _, g := range r.Goals {
		if !g.Reached() {
			t.Errorf("missed: %s", g)
		}
	}
	if folder == "" {
		return
	}
	if err := os.WriteFile(file(folder, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// file returns where the result of a part is saved.
func file(folder, part string) string { return filepath.Join(folder, part+".json") }

// Read returns the result of a part that is saved in a folder. The error is
// [io/fs.ErrNotExist] if there is none.
func Read(folder, part string) (s Saved, err error) {
	err = read(folder, part, &s)
	return s, err
}

// Goals returns only the goals of a saved result, which an older version can have saved.
func Goals(folder, part string) ([]Goal, error) {
	var s struct{ Goals []Goal }
	err := read(folder, part, &s)
	return s.Goals, err
}

func read(folder, part string, into any) error {
	content, err := os.ReadFile(file(folder, part))
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

// Folder returns the folder of the saved results.
func (p Page) Folder(root string) string {
	return filepath.Join(root, strings.TrimSuffix(p.File, ".md"))
}

// files returns the document, its pictures and the other files that show figures, by
// their names.
func (p Page) files(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	text, err := template.New("page").Funcs(view{p, root, files}.functions()).Parse(p.Text)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	if err := text.Execute(&page, nil); err != nil {
		return nil, err
	}
	files[p.File] = page.Bytes()
	if p.Also != nil {
		others, err := p.Also(root, p.Folder(root))
		maps.Copy(files, others)
		return files, err
	}
	return files, nil
}

// Write writes the files that show figures.
func (p Page) Write(root string) error {
	files, err := p.files(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, name), content, 0o644))
	}
	return err
}

// Shown returns an error if a file does not show the saved figures.
func (p Page) Shown(root string) error {
	files, err := p.files(root)
	if err != nil {
		return err
	}
	for name, want := range files {
		got, readErr := os.ReadFile(filepath.Join(root, name))
		if err = errors.Join(err, readErr); readErr == nil && !bytes.Equal(got, want) {
			err = errors.Join(err, fmt.Errorf("%s does not show the saved figures", name))
		}
	}
	return err
}

// saved returns the result of a part, and whether its code has changed since. Without
// one, it returns the zero Saved and true.
func (p Page) saved(root string, part Part) (s Saved, older bool, err error) {
	s, err = Read(p.Folder(root), part.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, false, err
	}
	hash, err := Hash(root, part.Sources)
	return s, s.Sources != hash, err
}

// Stale returns the names of the parts whose figures are missing or older than their
// code.
func (p Page) Stale(root string) (stale []string, err error) {
	for _, part := range p.Parts {
		_, older, err := p.saved(root, part)
		if err != nil {
			return nil, err
		}
		if older {
			stale = append(stale, part.Name)
		}
	}
	return stale, nil
}
