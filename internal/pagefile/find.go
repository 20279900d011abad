package pagefile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/cric-talk/guards"
)

// Variable names another file than the usual one.
const Variable = "GUARDS_PAGE"

// Load reads the page in a file.
func Load(file string) ([]guards.Guard, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user of the program names the file
	if err != nil {
		return nil, err
	}
	return Read(file, text)
}

// Above returns the page of a folder: the limits.json in it, or else in the nearest folder
// above. It is empty if there is none.
func Above(folder string) string {
	for at := range Upwards(folder) {
		file := filepath.Join(at, Name)
		if found, err := os.Stat(file); err == nil && found.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// Upwards yields a folder and then each one above it, as absolute paths.
func Upwards(folder string) iter.Seq[string] {
	return func(yield func(string) bool) {
		at, err := filepath.Abs(folder)
		for err == nil && yield(at) && at != filepath.Dir(at) {
			at = filepath.Dir(at)
		}
	}
}

// OfVariable returns the page that GUARDS_PAGE names, and its file; empty: it names none.
func OfVariable() (page []guards.Guard, file string, err error) {
	file = os.Getenv(Variable)
	if file == "" {
		return nil, "", nil
	}
	page, err = Load(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is %q, and there is no such file", Variable, file)
	}
	return page, file, err
}

// ofLayer is where a layer has a page.
var ofLayer = "/opt/guards/" + Name

// OfProgram returns the page of a program that is the same for every project. GUARDS_PAGE names
// its file. Without it, the file is limits.json: in Lambda beside the function's code or in the
// folder guards of a layer, elsewhere beside the program.
func OfProgram() ([]guards.Guard, error) {
	if page, file, err := OfVariable(); file != "" {
		return page, err
	}
	// Lambda names the folder of the code, which is always this one, to functions and not to
	// extensions. An emulator has another one.
	places := []string{filepath.Join(cmp.Or(os.Getenv("LAMBDA_TASK_ROOT"), "/var/task"), Name), ofLayer}
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" { // Lambda sets it
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		places = []string{filepath.Join(filepath.Dir(program), Name)}
	}
	for _, file := range places {
		if page, err := Load(file); !errors.Is(err, fs.ErrNotExist) {
			return page, err
		}
	}
	return nil, fmt.Errorf("there is no page of limits, want %s, or another file in %s", strings.Join(places, " or "), Variable)
}
