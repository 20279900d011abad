package command

import (
	"strings"
	"testing"

	app "github.com/cric-talk/guards/limits"
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

// tableOfPeople has a part with a wide column that is needed and one that is not.
func tableOfPeople() (table textTable) {
	table.head("FUNCTION", "ACTIVITY", "CODE", "LIMIT", "TIERS", "HOLD")
	table.needs("ACTIVITY", "LIMIT")
	table.repeats("CODE", "LIMIT")
	table.row("posts-guard", "create_post", "10/1m", "10/1m", "premium: minute: 20/1m, day: 400/1d; business: 900/1h", "")
	table.row("posts-guard", "delete_post", "9/1m", "8/1m", "", "")
	table.row("sms-guard", "send_code", "minute: bucket 1/1m, day: 10/1d", "minute: bucket 1/1m, day: 10/1d", "", "15 min")
	table.row()
	table.head("USER", "USED", "")
	table.row("u17", "10/10")
	table.painted(session{color: true}.paint(red, "[####] 100 %"))
	table.row("and 2 more, a sentence that may be longer than the lines of the table: see --rows")
	return table
}

// A table that is wider than the terminal keeps the columns that are needed most, and
// the others go under each row.
func TestATableFitsTheTerminal(t *testing.T) {
	const people = "\n\nUSER  USED\nu17   10/10  \x1b[31m[####] 100 %\x1b[0m\nand 2 more, a sentence that may be longer than the lines of the table: see --rows\n"
	for width, want := range map[int]string{
		80: `FUNCTION     ACTIVITY     LIMIT                            HOLD
posts-guard  create_post  10/1m
    TIERS premium: minute: 20/1m, day: 400/1d; business: 900/1h
posts-guard  delete_post  8/1m
    CODE 9/1m
sms-guard    send_code    minute: bucket 1/1m, day: 10/1d  15 min` + people,
		40: `FUNCTION     ACTIVITY     LIMIT  HOLD
posts-guard  create_post  10/1m
    TIERS premium: minute: 20/1m, day:
      400/1d; business: 900/1h
posts-guard  delete_post  8/1m
    CODE 9/1m
sms-guard    send_code           15 min
    LIMIT minute: bucket 1/1m, day:
      10/1d` + people,
		30: `ACTIVITY     LIMIT  HOLD
create_post  10/1m
    FUNCTION posts-guard
    TIERS premium: minute:
      20/1m, day: 400/1d;
      business: 900/1h
delete_post  8/1m
    FUNCTION posts-guard
    CODE 9/1m
send_code           15 min
    LIMIT minute: bucket 1/1m,
      day: 10/1d
    FUNCTION sms-guard` + people,
	} {
		var out stream
		if err := tableOfPeople().write(&out, width); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("with %d characters:\n%s\nwant:\n%s", width, &out, want)
		}
	}
}

// No word is lost, whatever the width of the terminal. No line is longer than the terminal,
// except a sentence and a word that is too long itself.
func TestANarrowTerminalLosesNoWord(t *testing.T) {
	table := tableOfPeople()
	for width := 1; width < 200; width++ {
		var out stream
		if err := table.write(&out, width); err != nil {
			t.Fatal(err)
		}
		words := " " + strings.Join(strings.Fields(out.String()), " ") + " "
		for _, row := range table {
			for i, cell := range row.cells {
				for word := range strings.FieldsSeq(cell) {
					if !row.head && i != 2 && !strings.Contains(words, " "+word+" ") {
						t.Errorf("with %d characters, %q is lost:\n%s", width, word, &out)
					}
				}
			}
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := characters(line); n > width && width >= 30 && !strings.HasPrefix(line, "and 2 more") {
				t.Errorf("with %d characters, a line has %d: %q", width, n, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("with %d characters, %q ends with a blank", width, line)
			}
		}
	}
}

// Commands write their tables for the terminal's width, and for a file with all columns.
func TestCommandsKnowHowWideTheTerminalIs(t *testing.T) {
	const replay = "replay ../../../docs/traffic/posts.csv --columns time=created_at,user=author_id --activity create_post --limit 2/1m"
	for _, command := range []string{"limits", replay, replay + " --compare 3/1m", "replay ../../../docs/traffic/posts.csv --columns time=created_at,user=author_id --activity create_post"} {
		whole := ""
		for _, width := range []int{0, 300, 120, 80, 60, 40} {
			var out, log stream
			if status := run(t.Context(), strings.Fields(command), session{page: app.All, out: &out, err: &log, width: width}); status != done {
				t.Fatalf("guards %s, with a width of %d: status %d, %s", command, width, status, &log)
			}
			switch {
			case width == 0:
				whole = out.String()
			case width == 300 && out.String() != whole:
				t.Errorf("guards %s prints\n%s\nto a wide terminal, want what a file gets:\n%s", command, &out, whole)
			}
			words := strings.Join(strings.Fields(out.String()), " ")
			for word := range strings.FieldsSeq(whole) {
				if !strings.Contains(words, word) && strings.ToUpper(word) != word {
					t.Errorf("guards %s, with a width of %d: %q is lost\n%s", command, width, word, &out)
				}
			}
			for line := range strings.Lines(out.String()) {
				if n := characters(strings.TrimSpace(line)); width > 0 && n > width && strings.Contains(line, "  ") {
					t.Errorf("guards %s, with a width of %d: a line has %d characters: %s", command, width, n, line)
				}
			}
		}
	}
}
