package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
)

// A Checkout is a working copy of this project.
type Checkout struct {
	Dir string // its root, as an absolute path

	root   *os.Root
	source *source
	module string // the module's path, for imports
}

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)`)

// ErrNoCheckout means that a folder is not in a checkout of this project.
var ErrNoCheckout = errors.New("not in a checkout of this project")

// Open finds the checkout that contains a folder. Without one, its error is
// ErrNoCheckout.
func Open(folder string) (*Checkout, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if found, err := os.Stat(folder); err != nil || !found.IsDir() {
		return nil, fmt.Errorf("there is no folder %s", folder)
	}
	for at := folder; ; at = filepath.Dir(at) {
		c := &Checkout{Dir: at}
		if c.root, err = os.OpenRoot(at); err != nil {
			return nil, err
		}
		if c.exists("go.mod") && c.exists(limitsFile) && c.exists(templateFile) {
			if err := c.load(); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			return c, nil
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
		if at == filepath.Dir(at) {
			return nil, fmt.Errorf("%s is %w: neither this folder nor one above it has go.mod, %s and %s",
				folder, ErrNoCheckout, limitsFile, templateFile)
		}
	}
}

// load reads the module's path and the limits.
func (c *Checkout) load() error {
	mod, err := c.read("go.mod")
	if err != nil {
		return err
	}
	match := moduleLine.FindStringSubmatch(mod)
	if match == nil {
		return errors.New("go.mod names no module")
	}
	c.module = match[1]
	text, err := c.read(limitsFile)
	if err != nil {
		return err
	}
	c.source, err = parse(text)
	return err
}

// Close lets go of the folder.
func (c *Checkout) Close() error { return c.root.Close() }

// Guards returns the guards of limits.go, in their order.
func (c *Checkout) Guards() limits.Guards { return c.source.guards }

// Variable returns the variable of a guard in limits.go, such as Posts for
// posts-guard. It is empty if there is no such guard.
func (c *Checkout) Variable(guard string) string { return c.source.byGuard[guard] }

// guard returns the guard with this name.
func (c *Checkout) guard(name string) (limits.Guard, bool) {
	for _, g := range c.source.guards {
		if g.Name == name {
			return g, true
		}
	}
	return limits.Guard{}, false
}

// Write writes changes. Its error names the files that are already written.
func (c *Checkout) Write(changes []Change) error {
	var written []string
	for _, change := range changes {
		err := c.root.MkdirAll(path.Dir(change.File), 0o755)
		if err == nil {
			err = c.root.WriteFile(change.File, []byte(change.After), 0o644)
		}
		if err != nil && len(written) > 0 {
			return fmt.Errorf("%w; these files are already changed: %s", err, strings.Join(written, ", "))
		}
		if err != nil {
			return err
		}
		written = append(written, change.File)
	}
	return nil
}

func (c *Checkout) read(file string) (string, error) {
	text, err := c.root.ReadFile(file)
	return string(text), err
}

func (c *Checkout) exists(file string) bool {
	_, err := c.root.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}
