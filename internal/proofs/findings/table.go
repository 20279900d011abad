package findings

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A Table is a part of a result that needs columns. Each row has as many cells
// as Head. In JSON, a row is an object that names its cells.
type Table struct {
	Title string
	Head  []string // each name once, and none empty
	Rows  [][]string
}

// saved is a Table in JSON.
type saved[Row any] struct {
	Title string   `json:"title"`
	Head  []string `json:"head"`
	Rows  []Row    `json:"rows"`
}

// MarshalJSON implements [json.Marshaler].
func (t Table) MarshalJSON() ([]byte, error) {
	for i, name := range t.Head {
		if name == "" || slices.Contains(t.Head[:i], name) {
			return nil, fmt.Errorf("table %q: the name of column %d is %q, want one of its own", t.Title, i, name)
		}
	}
	s := saved[row]{t.Title, t.Head, make([]row, len(t.Rows))}
	for i, cells := range t.Rows {
		if len(cells) != len(t.Head) {
			return nil, fmt.Errorf("table %q: row %d has %d cells, want %d", t.Title, i, len(cells), len(t.Head))
		}
		s.Rows[i] = row{t.Head, cells}
	}
	return json.Marshal(s)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Table) UnmarshalJSON(content []byte) error {
	var s saved[map[string]string]
	if err := json.Unmarshal(content, &s); err != nil {
		return err
	}
	*t = Table{Title: s.Title, Head: s.Head}
	for _, named := range s.Rows {
		cells := make([]string, len(s.Head))
		for i, name := range s.Head {
			cells[i] = named[name]
		}
		t.Rows = append(t.Rows, cells)
	}
	return nil
}

// A row is written with its columns in the order of the table.
type row struct{ head, cells []string }

// MarshalJSON implements [json.Marshaler].
func (r row) MarshalJSON() ([]byte, error) {
	content := []byte{'{'}
	for i, text := range r.cells {
		pair, err := json.Marshal(map[string]string{r.head[i]: text})
		if err != nil {
			return nil, err
		}
		content = append(append(content, pair[1:len(pair)-1]...), ',')
	}
	content[len(content)-1] = '}'
	return content, nil
}

// Cell returns a cell of the column with this name, in the first row that has each of these
// cells.
func (t Table) Cell(column string, with ...string) (string, bool) {
	i := slices.Index(t.Head, column)
	for _, cells := range t.Rows {
		if i >= 0 && !slices.ContainsFunc(with, func(text string) bool { return !slices.Contains(cells, text) }) {
			return cells[i], true
		}
	}
	return "", false
}
