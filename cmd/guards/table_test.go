package main

import "testing"

// Other people can write any text into a cell. No cell breaks the table or
// reaches the terminal as a control sequence, except one with a colour.
func TestTableShowsWhatCannotBeSeen(t *testing.T) {
	var table textTable
	table.row("WHY", "BY")
	table.row("a\nb\tc", "\x1b[31mop")
	table.row("d", "e")
	table.painted(console{color: true}.paint(red, "full"))
	var out stream
	if err := table.write(&out); err != nil {
		t.Fatal(err)
	}
	const want = "WHY      BY\n" + `a\nb\tc  \x1b[31mop` + "\n" + "d        e  \x1b[31mfull\x1b[0m\n"
	if out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
