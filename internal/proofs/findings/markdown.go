package findings

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/workbench/words"
)

// Markdown returns the figures, the goals, the tables, and how they were found.
func (s Saved) Markdown() string {
	var b strings.Builder
	if len(s.Figures) > 0 {
		rows := make([][]string, 0, len(s.Figures))
		for _, f := range s.Figures {
			rows = append(rows, []string{f.What, f.Value})
		}
		table(&b, []string{"figure", "value"}, rows)
	}
	tables := s.Tables
	if len(s.Goals) > 0 {
		tables = append([]Table{goals(s.Goals)}, tables...)
	}
	for _, t := range tables {
		fmt.Fprintf(&b, "\n**%s**\n\n", t.Title)
		table(&b, t.Head, t.Rows)
	}
	at := s.Date
	if s.Commit != "" {
		at += " at commit " + s.Commit
	}
	fmt.Fprintf(&b, "\n`%s`, %s, on %s, in %s.", s.Command, at, s.Machine, s.Took)
	if s.Seed != 0 {
		fmt.Fprintf(&b, " Seed %d.", s.Seed)
	}
	return strings.TrimSpace(b.String())
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
		b.WriteString("| " + escaped.Replace(grouped(cell)) + " ")
	}
	b.WriteString("|\n")
}

// grouped returns a whole number with commas between thousands, and any other
// text as it is.
func grouped(cell string) string {
	if n, err := strconv.ParseInt(cell, 10, 64); err == nil && n >= 0 && strconv.FormatInt(n, 10) == cell {
		return words.Grouped(n)
	}
	return cell
}
