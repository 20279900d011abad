package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/limits"
)

// Other people can write any text into a cell. No cell breaks the table or
// reaches the terminal as a control sequence, except one with a colour.
func TestTableShowsWhatCannotBeSeen(t *testing.T) {
	var table textTable
	table.row("WHY", "BY")
	table.row("a\nb\tc", "\x1b[31mop")
	table.row("d", "e")
	table.painted(session{color: true}.paint(red, "full"))
	var out stream
	if err := table.write(&out, 0); err != nil {
		t.Fatal(err)
	}
	const want = "WHY      BY\n" + `a\nb\tc  \x1b[31mop` + "\n" + "d        e  \x1b[31mfull\x1b[0m\n"
	if out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}

// On a narrow terminal, a table leaves out its last columns, so that no line
// wraps.
func TestANarrowTerminalShowsFewerColumns(t *testing.T) {
	var table textTable
	table.row("USER", "ACTIVITY", "USED", "WAIT", "")
	table.row("u17", "create_post", "10/10", "42 s")
	table.painted(session{color: true}.paint(red, "[####] 100 %"))
	table.row("and 2 more, a sentence that may be longer than the lines of the table: see --rows")
	rows := []string{ // how the row of u17 looks
		"u17",
		"u17   create_post",
		"u17   create_post  10/10",
		"u17   create_post  10/10  42 s",
		"u17   create_post  10/10  42 s  \x1b[31m[####] 100 %\x1b[0m",
	}
	for width, want := range map[int]string{0: rows[4], 79: rows[4], 44: rows[4], 43: rows[3], 30: rows[3], 29: rows[2], 24: rows[2], 23: rows[1], 16: rows[0], 2: rows[0]} {
		var out stream
		if err := table.write(&out, width); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(out.String(), "\n"); len(lines) != 4 || lines[1] != want || !strings.HasPrefix(lines[2], "and 2 more") || lines[3] != "" {
			t.Errorf("with %d characters: %q, want %q", width, lines, want)
		}
	}
}

// Commands write their tables for a terminal with fewer than 80 characters in a line.
func TestCommandsKnowHowWideTheTerminalIs(t *testing.T) {
	const replay = "replay ../../../docs/traffic/posts.csv --columns time=created_at,user=author_id --activity create_post --limit 2/1m"
	for command, column := range map[string]string{"limits": "TIERS", replay: "LONGEST WAIT", replay + " --compare 3/1m": "LONGEST WAIT"} {
		for width, shown := range map[int]bool{0: true, narrow(80): true, narrow(40): false} {
			var out, log stream
			status := run(t.Context(), strings.Fields(command), session{guards: limits.All, out: &out, err: &log, width: width})
			if status != done || strings.Contains(out.String(), column) != shown {
				t.Errorf("guards %s, with a width of %d: status %d, %s\n%s", command, width, status, &log, &out)
			}
		}
	}
}
