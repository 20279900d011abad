package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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

// write writes the table. No line ends with blanks, even if its last cells are
// empty.
func (t textTable) write(out io.Writer) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range t {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
