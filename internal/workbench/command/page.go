package command

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
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

// noteOtherPage warns, before a command that goes by the program's limits, if the current
// folder belongs to a project whose limits.go has other limits. An installed program becomes
// such a program by each change of limits.go. The check costs about a millisecond, and
// never makes a command fail.
func (c session) noteOtherPage(command *kong.Context) {
	name, _, _ := strings.Cut(command.Command(), " ")
	if slices.Contains([]string{"init", "new", "generate", "version", "completion", "complete"}, name) || c.folder == "" || c.pageFile != "" {
		return // these need no limits, or refuse to run with other ones
	}
	root := moduleOf(c.folder)
	if root == "" || !startsWithPage(root, c.built) {
		return
	}
	if what := scaffold.Differs(os.DirFS(root), c.page); what != "" {
		page := filepath.Join(root, "limits", "limits.go")
		c.note(page + " has other limits than this program: " + what)
		c.note("the command goes by this program's. To go by the file, build the program again with go install ./cmd/guards, or write go run ./cmd/guards in place of guards")
	}
}

// moduleOf returns the root of the Go module that contains a folder, or nothing.
func moduleOf(folder string) string {
	for at := range pagefile.Upwards(folder) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
	}
	return ""
}

// isModule reports whether the module with this root has this path.
func isModule(root, path string) bool {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	return err == nil && strings.HasPrefix(string(mod), "module "+path+"\n")
}

// onlyMain is the program of a project as guards init writes it.
var onlyMain = regexp.MustCompile(`\nfunc main\(\) \{\s*command\.Main\(limits\.All\)\s*\}`)

// startsWithPage reports whether a program goes by all of limits.go and nothing else, if it
// is one of the module in root. A program that a person changed can take other guards.
func startsWithPage(root string, built *debug.BuildInfo) bool {
	folder := "cmd/guards"
	if isModule(root, built.Main.Path) {
		folder = strings.TrimPrefix(built.Path, built.Main.Path+"/")
	}
	main, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path.Join(folder, "main.go"))))
	return err == nil && onlyMain.Match(main)
}
