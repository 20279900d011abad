package command

import (
	"path/filepath"

	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// findPage replaces the page of an installed program by the limits.json of the current folder or
// one above, or by the file in GUARDS_PAGE. The program of a project in Go has the project's own
// page and keeps it.
func (c *session) findPage() {
	if c.folder == "" || c.built.Main.Path != scaffold.Module {
		return
	}
	if c.pageFile = pagefile.Above(c.folder); c.pageFile != "" {
		c.page, c.wrongPage = pagefile.Load(c.pageFile)
	}
	if page, file, err := pagefile.OfVariable(); file != "" {
		c.page, c.pageFile, c.wrongPage = page, file, err
		if whole, err := filepath.Abs(file); err == nil {
			c.pageFile = whole
		}
	}
}

// itself returns how a person calls the program with the limits of the project.
func (c session) itself() string {
	if c.pageFile != "" {
		return "guards"
	}
	return "go run ./cmd/guards"
}
