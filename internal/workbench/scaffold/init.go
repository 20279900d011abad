package scaffold

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/tools/txtar"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/pagefile"
)

//go:embed project.txtar
var projectFiles string

var projectText = template.Must(template.New("").Delims("[[", "]]").Parse(projectFiles))

// An Origin tells where a new project gets [Module] from.
type Origin struct {
	Version string // such as v0.1.0
	Replace string // a folder with the module, for a version that is not published; may be empty
}

// Init returns the activity of a project of one guard with one activity, and its files. Name is the
// project's module. There is no go.sum: go mod tidy writes it.
func Init(name string, r Request, from Origin) (a limits.Activity, changes []Change, err error) {
	if err := checkModule(name); err != nil {
		return a, nil, err
	}
	all, err := limits.Link([]guards.Guard{{Name: r.Guard, Message: tooMany, Activities: []guards.Activity{r.Activity}}})
	if err := errors.Join(validName(r.Guard), err); err != nil {
		return a, nil, err
	}
	g := all[0]
	a = g.Activities[0]
	g.DelayedQueue = a.Limit.Queues()
	files, err := from.fill(name, g).files(projectText)
	if err != nil {
		return a, nil, err
	}
	for i, f := range files {
		if path.Ext(f.Name) == ".go" {
			if files[i].Data, err = format.Source(f.Data); err != nil {
				return a, nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	changes, err = generated(files, limits.Guards{g}, true)
	return a, changes, err
}

// Into returns the changes of a new project for a folder, which need not exist: what the
// folder's .gitignore lacks is added to it. Others are the names in the folder, except Git's
// own, a licence and .gitignore. It returns an error if the folder has another file of the
// project already. It writes nothing.
func Into(dir string, changes []Change) (into []Change, others []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return changes, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !expected.MatchString(e.Name()) {
			others = append(others, e.Name())
		}
	}
	into = slices.Clone(changes)
	for i, c := range into {
		file := filepath.Join(dir, filepath.FromSlash(c.File))
		found, err := os.Lstat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, nil, err
		case c.File != ignoreFile || !found.Mode().IsRegular():
			return nil, nil, fmt.Errorf("%s has %s already: choose a new folder", dir, c.File)
		}
		text, err := os.ReadFile(file) //nolint:gosec // the person named the folder
		if err != nil {
			return nil, nil, err
		}
		into[i].New, into[i].Before, into[i].After = false, string(text), withLines(string(text), c.After)
	}
	return into, others, nil
}

const ignoreFile = ".gitignore"

// expected is what a new repository has before its first file: .git, .gitignore and a licence
// such as LICENSE.md.
var expected = regexp.MustCompile(`^\.git(ignore)?$|^(?i:licen[cs]e|copying)([.-].*)?$`)

// withLines returns a text with the other lines that it lacks added at its end.
func withLines(text, lines string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for line := range strings.Lines(lines) {
		if !strings.Contains("\n"+text, "\n"+line) {
			text += line
		}
	}
	return text
}

// Create writes the files of a new project into a folder, which need not exist: see [Into].
// If one can't be written, it writes none.
func Create(dir string, changes []Change) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // like any folder of sources, people may share it
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	p := &Project{Dir: dir, root: root}
	if err := p.Write(changes); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", dir, err), p.Close())
	}
	return p.Close()
}

// checkModule returns an error if a module can't have this path, or if the go command
// takes it for something else.
func checkModule(name string) error {
	first, _, _ := strings.Cut(name, "/")
	reserved := []string{"go", "std", "cmd", "con", "aux", "nul", "prn", "vendor", "internal", "main", "all", "tool", "work"}
	if !moduleName.MatchString(name) || slices.Contains(reserved, first) || strings.Contains("/"+name+"/", "/vendor/") || name == Module {
		return fmt.Errorf("module is %q, want a path of letters, digits, hyphens and dots such as example.com/my-guards; give it with --module", name)
	}
	return nil
}

// moduleName is the form of a module's path: no part ends in a dot.
var moduleName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9_-])?(/[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9_-])?)*$`)

// tooMany is the message of a new guard.
const tooMany = "Rate limit exceeded: Too many requests. Please try again later."

// A filling is what the texts of a new project need.
type filling struct {
	Origin
	Number                                                         string // of the version, without a v
	Module, Name, Stack, First, Activity, Options, Variable, Guard string
	Page, Generate, Step                                           string // for the head of the template
	Refused                                                        int64
}

// fill returns what the texts of a project with one guard need.
func (from Origin) fill(name string, g limits.Guard) filling {
	return filling{
		Origin: from, Number: strings.TrimPrefix(from.Version, "v"),
		Module: name, Name: path.Base(name), Stack: stackName(path.Base(name)), First: g.Name, Activity: g.Activities[0].Name, Options: Options(g.Activities[0]),
		Variable: freeName(g.Name, map[string]bool{"All": true}), Guard: value("tooMany", g), Refused: Refused(g.Activities[0]),
		Page: limitsFile, Generate: "make generate", Step: "build",
	}
}

// files returns the files of a text.
func (f filling) files(text *template.Template) ([]txtar.File, error) {
	var b strings.Builder
	err := text.Execute(&b, f)
	return txtar.Parse([]byte(b.String())).Files, err
}

// generated returns the files of a new project, together with what follows from its guards.
func generated(files []txtar.File, all limits.Guards, inGo bool) (changes []Change, err error) {
	folder, err := txtar.FS(&txtar.Archive{Files: files})
	if err != nil {
		return nil, err
	}
	generated, err := Stale(folder, all, inGo)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		c := Change{File: f.Name, New: true, What: whatOf[f.Name], After: string(f.Data)}
		if i := slices.IndexFunc(generated, func(g Change) bool { return g.File == f.Name }); i >= 0 {
			c.After = generated[i].After
			generated = slices.Delete(generated, i, i+1)
		}
		changes = append(changes, c)
	}
	return append(changes, generated...), nil
}

// whatOf describes the files of a new project that no generator describes.
var whatOf = map[string]string{
	"go.mod":                   "the module, which requires " + Module,
	pagefile.Name:              "every guard and its limits, on one page",
	limitsFile:                 "every guard and its limits, on one page",
	testFile:                   "a test of the limits",
	"cmd/guards/main.go":       "the command line that knows these limits",
	templateFile:               "the stack for SAM",
	"samconfig.toml":           "SAM's settings",
	"Makefile":                 "make help lists its targets",
	"README.md":                "what to do with the project",
	ignoreFile:                 "what Git leaves out",
	".golangci.yml":            "the settings of golangci-lint",
	".github/workflows/ci.yml": "runs make test on GitHub",
}

// stackName returns a name that CloudFormation accepts for a stack.
func stackName(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(name, "-"), "-")
	return cmp.Or(strings.TrimLeft(name, "0123456789-"), "guards")
}

// Refused returns how many requests of one user it takes until one is refused.
func Refused(a limits.Activity) int64 {
	least := a.Limit.Quota().Limit
	for _, s := range a.Subjects {
		least = min(least, s.Limit.Quota().Limit)
	}
	return least + 1
}

//go:embed page.txtar
var pageFiles string

var pageText = template.Must(template.New("").Delims("[[", "]]").Parse(pageFiles))

// InitPage is [Init] for a project whose page is a file of JSON. It has no module.
func InitPage(name string, r Request, from Origin) (a limits.Activity, changes []Change, err error) {
	g := guards.Guard{Name: r.Guard, Message: tooMany, Activities: []guards.Activity{r.Activity}}
	all, err := limits.Link([]guards.Guard{g})
	if err := errors.Join(validName(r.Guard), err); err != nil {
		return a, nil, err
	}
	a = all[0].Activities[0]
	g.DelayedQueue = a.Limit.Queues()
	all[0].DelayedQueue = g.DelayedQueue
	filling := from.fill(name, all[0])
	filling.Page, filling.Generate, filling.Step = pagefile.Name, "guards generate", "package"
	files := []txtar.File{{Name: pagefile.Name, Data: []byte(pagefile.Text(g))}}
	for _, text := range []*template.Template{projectText, pageText} {
		more, err := filling.files(text)
		if err != nil {
			return a, nil, err
		}
		for _, f := range more {
			if text == pageText || slices.Contains([]string{templateFile, ignoreFile}, f.Name) {
				files = append(files, f)
			}
		}
	}
	changes, err = generated(files, all, false)
	for i := range changes {
		if changes[i].File == "Makefile" {
			changes[i].What = "checks the page, puts it and the programs together, and deploys"
		}
	}
	return a, changes, err
}
