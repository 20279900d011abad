package command

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// A textTable aligns columns. A row without cells is an empty line.
type textTable [][]string

// row adds a row. Other people wrote some of the cells, so row escapes the
// characters that could break the table or control the terminal.
func (t *textTable) row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = visible(cell)
	}
	*t = append(*t, row)
}

// painted adds a cell with colours at the end of the last row, without escapes.
func (t *textTable) painted(cell string) {
	last := len(*t) - 1
	(*t)[last] = append((*t)[last], cell)
}

// write writes the table. If a line would have more characters than width, the
// last columns are left out until all lines fit, but never the first column. A
// width of 0 has room for all.
func (t textTable) write(out io.Writer, width int) error {
	columns := 0
	for _, cells := range t {
		columns = max(columns, len(cells))
	}
	lines := t.lines(columns)
	for width > 0 && columns > 1 && t.widest(lines) > width {
		columns--
		lines = t.lines(columns)
	}
	_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n")
	return err
}

// lines returns the lines of the table with its first columns. No line ends with
// blanks, even if its last cells are empty.
func (t textTable) lines(columns int) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range t {
		_, _ = fmt.Fprintln(w, strings.Join(cells[:min(columns, len(cells))], "\t"))
	}
	_ = w.Flush() // a Builder takes everything
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

// widest returns the number of characters in the longest of the table's lines. A
// row with only one cell is a sentence, which may wrap.
func (t textTable) widest(lines []string) (most int) {
	for i, cells := range t {
		if len(cells) > 1 {
			most = max(most, utf8.RuneCountInString(colors.ReplaceAllString(lines[i], "")))
		}
	}
	return most
}

// colors matches what switches a colour on or off.
var colors = regexp.MustCompile(`\x1b\[\d+m`)
