package command

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// A textTable aligns columns. It has one part or several, and each begins with its head.
type textTable []tableRow

// A tableRow is a line of a table. Without cells, it is an empty line. With one cell, it is
// a sentence.
type tableRow struct {
	cells []string
	head  bool
	first []string  // of a head: the columns that a person needs most
	same  [2]string // of a head: two columns, see repeats
}

// head begins a part of the table with the names of its columns.
func (t *textTable) head(names ...string) { *t = append(*t, tableRow{cells: names, head: true}) }

// needs names the columns of the last head that a person needs most, in this order. The
// others follow them from left to right.
func (t *textTable) needs(names ...string) { (*t)[len(*t)-1].first = names }

// repeats tells that one column often has the same text as another. Such a cell does not go
// under the row, because it would tell nothing new.
func (t *textTable) repeats(column, of string) { (*t)[len(*t)-1].same = [2]string{column, of} }

// row adds a row. Other people wrote some of the cells, so row escapes the
// characters that could break the table or control the terminal.
func (t *textTable) row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = visible(cell)
	}
	*t = append(*t, tableRow{cells: row})
}

// painted adds a cell with colours at the end of the last row, without escapes.
func (t *textTable) painted(cell string) {
	last := &(*t)[len(*t)-1]
	last.cells = append(last.cells, cell)
}

// below writes a line of text, and the table below it.
func (t textTable) below(env session, line string) error {
	return append(textTable{{cells: []string{line}}}, t...).write(env.out, env.width)
}

// write writes the table for a terminal with width characters in a line. A width of 0 has
// room for all. A part that does not fit keeps the columns that are needed most, and the
// others go under each row.
func (t textTable) write(out io.Writer, width int) error {
	lines := t.lines()
	if width > 0 && t.widest(lines) > width {
		lines = nil
		for from := 0; from < len(t); { // a part, which ends before the next head
			to := from + 1
			for to < len(t) && !t[to].head {
				to++
			}
			lines = append(lines, t[from:to].fit(width)...)
			from = to
		}
	}
	_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n")
	return err
}

// fit returns the lines of a part. None but a sentence has more than width characters,
// unless a single word or the most needed column has.
func (t textTable) fit(width int) (lines []string) {
	aligned := t.lines()
	if !t[0].head || t.widest(aligned) <= width {
		return aligned
	}
	room := t.room(width)
	beside := make(textTable, len(t))
	for n, row := range t {
		beside[n] = row.beside(room)
	}
	for n, line := range beside.lines() {
		sentence := len(t[n].cells) < 2
		if line != "" || sentence {
			lines = append(lines, line)
		}
		if !sentence {
			lines = append(lines, t.under(t[n], room, width)...)
		}
	}
	return lines
}

// room returns how many characters a cell of each column has at most, if it stands beside
// the others. A longer one goes under the row, as do all cells of a column without room.
// The most needed column has room for each cell, and a column that is empty has none.
func (t textTable) room(width int) []int {
	head := t[0]
	room := make([]int, len(head.cells))
	left := width
	for n, i := range head.order() {
		name := head.cells[i]
		var cells []int // their lengths
		for _, row := range t[1:] {
			if cell := row.cell(i); cell != "" {
				cells = append(cells, characters(cell))
			}
		}
		if len(cells) == 0 {
			continue
		}
		widest := max(characters(name), slices.Max(cells))
		switch {
		case n == 0 || widest <= left:
			room[i] = widest
		case n < len(head.first) && characters(name) <= left && slices.Min(cells) <= left:
			cells = slices.DeleteFunc(cells, func(n int) bool { return n > left })
			room[i] = max(characters(name), slices.Max(cells))
		default:
			continue
		}
		left -= room[i] + gap
	}
	return room
}

// order returns the columns of a head by their numbers, the most needed one first.
func (r tableRow) order() (order []int) {
	for _, name := range slices.Concat(r.first, r.cells) {
		if i := slices.Index(r.cells, name); !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	return order
}

// beside returns the row with the cells that have room. A sentence stays as it is.
func (r tableRow) beside(room []int) tableRow {
	if len(r.cells) < 2 {
		return r
	}
	var cells []string
	for i, most := range room {
		switch cell := r.cell(i); {
		case most == 0:
		case characters(cell) <= most:
			cells = append(cells, cell)
		default:
			cells = append(cells, "")
		}
	}
	return tableRow{cells: append(cells, "")} // two cells at least, because it is no sentence
}

// cell returns one of the row's cells. It is empty if the row has fewer, or is a sentence.
func (r tableRow) cell(i int) string {
	if len(r.cells) < 2 || i >= len(r.cells) {
		return ""
	}
	return r.cells[i]
}

const (
	gap    = 2      // blanks between two columns
	indent = "    " // in front of what goes under a row
)

// under returns the lines with the cells of a row that have no room beside the others, each
// behind the name of its column. Cells that fit into one line share it.
func (t textTable) under(row tableRow, room []int, width int) (lines []string) {
	line, head := "", t[0]
	of := slices.Index(head.cells, head.same[1])
	for _, i := range head.order() {
		cell := row.cell(i)
		repeated := head.cells[i] == head.same[0] && cell == row.cell(of) // see repeats
		if cell == "" || row.head || characters(cell) <= room[i] || repeated {
			continue
		}
		text := strings.TrimSpace(head.cells[i] + " " + cell)
		if line != "" && characters(indent+line+"  "+text) <= width {
			line += "  " + text
			continue
		}
		lines = append(lines, wrapped(line, width)...)
		line = text
	}
	return append(lines, wrapped(line, width)...)
}

// wrapped returns a line of under, cut behind semicolons if that suffices, and between words
// if not. What follows is indented further.
func wrapped(text string, width int) (lines []string) {
	if text == "" {
		return nil
	}
	words := strings.SplitAfter(text, "; ")
	if slices.ContainsFunc(words, func(s string) bool { return characters(indent+"  "+strings.TrimSpace(s)) > width }) {
		words = strings.SplitAfter(text, " ")
	}
	line := indent
	for n, word := range words {
		if n > 0 && characters(line+strings.TrimSpace(word)) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = indent + "  "
		}
		line += word
	}
	return append(lines, line)
}

// lines returns the lines of the table. No line ends with blanks, even if its last cells
// are empty.
func (t textTable) lines() []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, gap, ' ', 0)
	for _, row := range t {
		_, _ = fmt.Fprintln(w, strings.Join(row.cells, "\t"))
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
	for i, row := range t {
		if len(row.cells) > 1 {
			most = max(most, characters(lines[i]))
		}
	}
	return most
}

// characters counts the characters of a text that a terminal shows.
func characters(s string) int { return utf8.RuneCountInString(colors.ReplaceAllString(s, "")) }

// colors matches what switches a colour on or off.
var colors = regexp.MustCompile(`\x1b\[\d+m`)
