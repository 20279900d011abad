package prove

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed reliability.md.tmpl
var text string

// WritePage writes docs/reliability.md from the saved figures.
func WritePage() error {
	root, err := root()
	if err != nil {
		return err
	}
	content, err := page(root)
	if err != nil {
		return err
	}
	return os.WriteFile(pageFile(root), content, 0o644)
}

func pageFile(root string) string { return filepath.Join(root, "docs", "reliability.md") }

// page returns the content of docs/reliability.md.
func page(root string) ([]byte, error) {
	t, err := template.New("reliability.md").Funcs(template.FuncMap{
		"figures": func(part string) (string, error) { return figures(root, part) },
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if err := t.Execute(&content, nil); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// figures returns the section of one part as Markdown.
func figures(root, part string) (string, error) {
	p, err := find(part)
	if err != nil {
		return "", err
	}
	s, err := read(root, p)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("This proof has not run with its long bounds yet. `make prove PART=%s` runs it.", part), nil
	}
	if err != nil {
		return "", err
	}
	var b strings.Builder
	rows := make([][]string, 0, len(s.Figures))
	for _, f := range s.Figures {
		rows = append(rows, []string{f.What, f.Value})
	}
	if len(rows) > 0 {
		table(&b, []string{"figure", "value"}, rows)
	}
	for _, t := range s.Tables {
		fmt.Fprintf(&b, "\n**%s**\n\n", t.Title)
		table(&b, t.Head, t.Rows)
	}
	seed := ""
	if s.Seed != 0 {
		seed = fmt.Sprintf(" Seed %d.", s.Seed)
	}
	fmt.Fprintf(&b, "\n`%s`, %s, on %s, in %s.%s", s.Command, s.Date, s.Machine, s.Took, seed)
	return strings.TrimSpace(b.String()), nil
}

func table(b *strings.Builder, head []string, rows [][]string) {
	row(b, head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, cells := range rows {
		row(b, cells)
	}
}

func row(b *strings.Builder, cells []string) {
	escaped := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, cell := range cells {
		b.WriteString("| " + escaped.Replace(cell) + " ")
	}
	b.WriteString("|\n")
}

// count returns n with its noun: "1 core", "2 cores".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
