// Package scaffold writes the files of a project that follow from its guards, and
// adds guards and activities to a project.
//
// The guards come from the program that runs. Nothing evaluates the text of
// limits.go. So after a change of limits.go, only a program that is built again
// writes what follows: go run ./cmd/guards generate.
package scaffold

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/pagefile"
)

// The files that every project has. A guard's own files are beside them.
const (
	limitsFile   = "limits/limits.go"
	testFile     = "limits/limits_test.go"
	templateFile = "template.yaml"
	changelog    = "CHANGELOG.md"
)

// A Project is the folder of a project, with the guards of the program.
type Project struct {
	Dir string // its root, as an absolute path

	root   *os.Root
	page   []guards.Guard
	guards limits.Guards // the page's
	file   string        // the name of the page in JSON, in the root; empty: the project is in Go
}

// These errors of [Open] ask for another folder or another program.
var (
	ErrNoProject   = errors.New("not in a project")
	ErrOtherLimits = errors.New("this program does not know it")
	ErrMoreLimits  = errors.New("this program has it")
	ErrNotTheSame  = errors.New("this program has other limits")
)

// Open finds the project that contains a folder. Without one, its error is
// ErrNoProject. If limits.go names a guard or an activity that is not one of
// guards, the program is older than this file, and the error is ErrOtherLimits. If it
// does not name one of guards, the program belongs to another project, or is older,
// and the error is ErrMoreLimits. If it has another limit, the error is
// ErrNotTheSame.
func Open(folder string, page []guards.Guard) (*Project, error) {
	all, err := limits.Link(page)
	if err != nil {
		return nil, err
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if found, err := os.Stat(folder); err != nil || !found.IsDir() {
		return nil, fmt.Errorf("there is no folder %s", folder)
	}
	for at := range pagefile.Upwards(folder) {
		in := os.DirFS(at)
		if !exists(in, "go.mod") || !exists(in, limitsFile) || !exists(in, templateFile) {
			continue
		}
		root, err := os.OpenRoot(at)
		if err != nil {
			return nil, err
		}
		p := &Project{Dir: at, root: root, page: page, guards: all}
		if err := p.checkNames(); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		return p, nil
	}
	return nil, fmt.Errorf("%s is %w: neither this folder nor one above it has go.mod, %s and %s",
		folder, ErrNoProject, limitsFile, templateFile)
}

// OpenPage opens the project whose page is a file of JSON. The file's folder is its root.
func OpenPage(file string, page []guards.Guard) (*Project, error) {
	all, err := limits.Link(page)
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Split(file)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Project{Dir: filepath.Clean(dir), root: root, page: page, guards: all, file: name}, nil
}

// checkNames returns an error if limits.go names what the program does not have.
func (p *Project) checkNames() error {
	page, err := parse(p.root.FS(), limitsFile)
	if err != nil {
		return err
	}
	known := p.guards.Activities()
	for _, g := range p.guards {
		known = append(known, g.Name)
		for _, a := range g.Activities {
			for _, s := range a.Subjects {
				known = append(known, s.Name)
			}
		}
	}
	for _, lit := range all[*ast.CompositeLit](page) {
		if name := literal(field(lit, "Name")); name != "" && !slices.Contains(known, name) {
			return fmt.Errorf("%s names %s, and %w", limitsFile, name, ErrOtherLimits)
		}
	}
	files, err := sources(p.root.FS())
	for _, g := range p.guards {
		if !slices.ContainsFunc(files, func(s *source) bool { return s.contains(g.Name) }) && err == nil {
			err = fmt.Errorf("no file in limits/ names %s, but %w", g.Name, ErrMoreLimits)
		}
	}
	if what := Differs(p.root.FS(), p.page); what != "" && err == nil {
		err = fmt.Errorf("%w than %s: %s", ErrNotTheSame, limitsFile, what)
	}
	return err
}

// Close lets go of the folder.
func (p *Project) Close() error { return p.root.Close() }

// Stale returns what [Stale] returns for the project's folder and guards.
func (p *Project) Stale() ([]Change, error) { return Stale(p.root.FS(), p.guards, p.file == "") }

// Extra returns what the project's template.extra.yaml changes in the generated parts of
// template.yaml, such as: adds Globals.Function.Tracing. Without this file, it returns nothing.
func (p *Project) Extra() (did []string, err error) {
	_, did, err = withExtra(p.root.FS(), p.guards, p.file == "")
	return did, err
}

// Write writes all changes or, if one can't be written, none of them.
func (p *Project) Write(changes []Change) error {
	for i, c := range changes {
		if err := p.write(c); err != nil {
			return errors.Join(err, p.undo(changes[:i+1]))
		}
	}
	for _, c := range changes {
		if c.Gone {
			_ = p.root.Remove(path.Dir(c.File)) // it fails while another file is in the folder
		}
	}
	return nil
}

func (p *Project) write(c Change) error {
	if c.Gone {
		return p.root.Remove(c.File)
	}
	if err := p.root.MkdirAll(path.Dir(c.File), 0o755); err != nil {
		return err
	}
	return p.root.WriteFile(c.File, []byte(c.After), 0o644)
}

// undo writes the old texts of changes, and removes new files.
func (p *Project) undo(changes []Change) (err error) {
	for _, c := range changes {
		if !c.New {
			err = errors.Join(err, p.root.WriteFile(c.File, []byte(c.Before), 0o644))
		} else if gone := p.root.Remove(c.File); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

func (p *Project) read(file string) (string, error) {
	text, err := p.root.ReadFile(file)
	return string(text), err
}
