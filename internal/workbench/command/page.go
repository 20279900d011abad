package command

import (
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// findPage replaces the page of an installed program by the limits.json of the current folder or
// one above, or by the file in GUARDS_PAGE. The program of a project in Go has the project's own
// page and keeps it.
func (c *session) findPage() {
	if !c.installed() {
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

// installed reports whether this is the program of this module, and not the one of a project.
func (c session) installed() bool { return c.folder != "" && c.built.Main.Path == scaffold.Module }

// needsPage reports whether a mistake in the page stops a command. A limits.json above a new
// project can belong to something else.
func (c session) needsPage(command *kong.Context) bool {
	name, _, _ := strings.Cut(command.Command(), " ")
	return name != "completion" && name != "version" && (name != "init" || c.wrongPage == nil)
}

// itself returns how a person calls the program with the limits of the project.
func (c session) itself() string {
	if c.pageFile != "" {
		return "guards"
	}
	return "go run ./cmd/guards"
}
