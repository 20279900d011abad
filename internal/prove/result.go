package prove

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A Result is what a proof found.
type Result struct {
	Seed    uint64   `json:"seed,omitempty"` // 0: the proof uses no random numbers
	Figures []Figure `json:"figures"`
	Tables  []Table  `json:"tables,omitempty"`
}

// A Figure is one line of a result, such as {"states", "1,204,511"}.
type Figure struct {
	What  string `json:"what"`
	Value string `json:"value"`
}

// A Table is a part of a result that needs columns. Each row has as many cells
// as Head.
type Table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// A saved result also says when, how and for which code it was found.
type saved struct {
	Result

	Date    string `json:"date"`    // as 2006-01-02
	Command string `json:"command"` // finds the figures again
	Machine string `json:"machine"`
	Took    string `json:"took"`
	Sources string `json:"sources"` // the hash of the code, see Part.Sources
}

// Save saves the result of a part of the proof in internal/prove/figures, if the
// long bounds apply. Otherwise it only logs the figures. It fails the test if
// part has no entry in Parts, or if the test has failed already.
func Save(t testing.TB, part string, r Result) {
	t.Helper()
	p, err := find(part)
	if err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.Fatalf("the proof %s failed, so its figures are not saved", part)
	}
	for _, f := range r.Figures {
		t.Logf("%s: %s", f.What, f.Value)
	}
	if !Long() || os.Getenv("PLANTED") != "" { // the figures of a planted bug are worth nothing
		return
	}
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	hash, err := p.hash(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(root, p, saved{
		Result: r, Date: time.Now().UTC().Format(time.DateOnly), Command: "make prove PART=" + part,
		Machine: machine(), Took: time.Since(start).Round(time.Second).String(), Sources: hash,
	}); err != nil {
		t.Fatal(err)
	}
}

// machine describes this machine in a few words.
func machine() string {
	return runtime.GOOS + "/" + runtime.GOARCH + ", " + count(runtime.NumCPU(), "core") + ", " + runtime.Version()
}

func write(root string, p Part, s saved) error {
	content, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(p.file(root), append(content, '\n'), 0o644)
}

// read returns the saved result of p.
func read(root string, p Part) (s saved, err error) {
	content, err := os.ReadFile(p.file(root))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(content, &s)
}

func (p Part) file(root string) string {
	return filepath.Join(root, "internal", "prove", "figures", p.Name+".json")
}
