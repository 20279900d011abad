//go:build unix

package bench

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

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

// quotes is the part of README.md that has figures.
var quotes = regexp.MustCompile(`(?s)(<!-- figures of docs/performance.md -->\n\n).*?(\n\n<!-- end of the figures -->)`)

// WritePage writes docs/performance.md, its pictures, and the figures in
// README.md. All of them come from the saved results.
func WritePage() error {
	root, err := testkit.Root()
	if err != nil {
		return err
	}
	pages, err := pages(root)
	if err != nil {
		return err
	}
	for name, content := range pages {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// folder returns where the results are that the page shows.
func folder(root string) string { return filepath.Join(root, "internal", "proofs", "bench", "figures") }

// pages returns each file that shows figures, by its path.
func pages(root string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	page, err := findings.Page(text, func(part string) (string, error) { return section(root, part, files) })
	if err != nil {
		return nil, err
	}
	files["docs/performance.md"] = page
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	quoted, err := quote(root)
	if err != nil {
		return nil, err
	}
	if !quotes.Match(readme) {
		return nil, errors.New("README.md has no place for figures")
	}
	files["README.md"] = quotes.ReplaceAll(readme, []byte("${1}"+quoted+"${2}"))
	return files, nil
}

// section returns the results of a part as Markdown. It adds the part's pictures
// to files.
func section(root, part string, files map[string][]byte) (string, error) {
	p, err := find(part)
	if err != nil {
		return "", err
	}
	s, err := findings.Read[saved](file(folder(root), p.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("This has not been measured yet: `%s` measures it.", p.command()), nil
	}
	var b strings.Builder
	for _, c := range s.Charts {
		name := "docs/img/performance-" + c.Name + ".svg"
		files[name] = c.SVG()
		fmt.Fprintf(&b, "![%s](img/performance-%s.svg)\n\n", c.Title, c.Name)
	}
	b.WriteString(s.Markdown())
	if err == nil {
		var older bool
		if older, err = s.Older(root, findings.Asks); older {
			b.WriteString(findings.HasChanged)
		}
	}
	return b.String(), err
}

// quote returns the sentence of README.md that has figures.
func quote(root string) (string, error) {
	s, err := findings.Read[saved](file(folder(root), "decision"))
	if errors.Is(err, fs.ErrNotExist) {
		return "[docs/performance.md](docs/performance.md) lists what is measured.", nil
	}
	if err != nil {
		return "", err
	}
	median := make(map[string]float64)
	for _, g := range s.Goals {
		median[g.What] = g.Median
	}
	return fmt.Sprintf("A decision takes %.2f times the CPU time of one `UpdateItem` with the AWS SDK. A refusal from memory takes\n"+
		"%.0f µs. [docs/performance.md](docs/performance.md) has the figures, and the commands that measure them.",
		median[DecisionCPU], median[RefusalCPU]), nil
}
