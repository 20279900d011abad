// Command generate writes the files that follow from internal/limits and from
// the schemas: the list of activities of each client, and openapi.json. It runs
// in the folder schema, as go generate does.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cric-talk/guards/internal/workbench/lists"
	"github.com/cric-talk/guards/limits"
)

func main() {
	if err := write(".."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write writes all generated files of the repository at root.
func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the content of each generated file, by its path in the
// repository. It reads the schemas of the repository at root.
func generate(root string) (map[string][]byte, error) {
	files, err := lists.Clients(limits.All)
	if err != nil {
		return nil, err
	}
	files["schema/openapi.json"], err = openAPI(filepath.Join(root, "schema"))
	return files, err
}
