//go:build unix

package bench

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit"
)

// The goals that README.md quotes.
const (
	DecisionCPU = "CPU of a decision, times a bare UpdateItem of the SDK"
	RefusalCPU  = "CPU of a refusal from memory, in µs"
)

//go:embed performance.md.tmpl
var text string

// page is docs/performance.md.
var page = func() findings.Page {
	p := findings.Page{File: "docs/performance.md", Text: text, Also: quoted}
	for _, part := range Parts {
		sources := part.Sources
		if sources == nil {
			sources = findings.Asks
		}
		p.Parts = append(p.Parts, findings.Part{Name: part.Name, Command: part.command(), Sources: sources})
	}
	return p
}()

// WritePage writes docs/performance.md, its pictures, and the figures in
// README.md. All of them come from the saved results in docs/performance.
func WritePage() error {
	root, err := testkit.Root()
	if err != nil {
		return err
	}
	return page.Write(root)
}

// quotes is the part of README.md that has figures.
var quotes = regexp.MustCompile(`(?s)(<!-- figures of docs/performance.md -->\n\n).*?(\n\n<!-- end of the figures -->)`)

// quoted returns README.md with the saved figures.
func quoted(root, folder string) (map[string][]byte, error) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	if !quotes.Match(readme) {
		return nil, errors.New("README.md has no place for figures")
	}
	s, err := findings.Read(folder, "decision")
	if err != nil {
		return nil, err
	}
	median := make(map[string]float64)
	for _, g := range s.Goals {
		median[g.What] = g.Median
	}
	text := fmt.Sprintf("A decision takes %.2f times the CPU time of one `UpdateItem` with the AWS SDK. A refusal from memory takes\n"+
		"%.0f µs. [docs/performance.md](docs/performance.md) has the figures, and the commands that measure them.",
		median[DecisionCPU], median[RefusalCPU])
	return map[string][]byte{"README.md": quotes.ReplaceAll(readme, []byte("${1}"+text+"${2}"))}, nil
}
