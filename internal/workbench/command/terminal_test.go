package command

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

// A terminal shows the progress of a long task and clears it at the end. A file
// gets no progress.
func TestOnlyTerminalsShowProgress(t *testing.T) {
	p := ofApp(t)
	at := func(progress bool, args ...string) (out, log string) {
		status, out, log := session{page: app.All, progress: progress, now: atPinned}.does(t, append(args, p.where...)...)
		if status != done {
			t.Fatalf("guards %v: status %d: %s", args, status, log)
		}
		return out, log
	}
	p.does("check create_post --user u1 --store dynamodb")
	for last, args := range map[string][]string{
		"[################] 100 %  1 items of 1 users":              {"stats"},
		"[################] 100 %  1 items, 0 to delete, 0 deleted": {"cleanup", "--dry-run"},
	} {
		shown, log := at(true, args...)
		lines := strings.Split(log, "\r")
		if n := len(lines); n < 64 || lines[n-2] != last+clearRest || lines[n-1] != clearRest {
			t.Errorf("guards %v shows %q on a terminal, want it to end with %q", args, log, last)
		}
		if filed, log := at(false, args...); log != "" || filed != shown {
			t.Errorf("guards %v prints %q and %q to files, want %q and nothing", args, filed, log, shown)
		}
	}
}

func TestColorful(t *testing.T) {
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if colorful(pipe) {
		t.Error("a pipe counts as a terminal")
	}
	for setting, want := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		t.Setenv("NO_COLOR", "")
		t.Setenv("TERM", "xterm")
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
		if wantsColors() != want {
			t.Errorf("%s: colours on a terminal: %v, want %v", setting, !want, want)
		}
	}
	if got := (session{}).paint(red, "refused"); got != "refused" {
		t.Errorf("%q has colours, but the console shows none", got)
	}
	if got := (session{color: true}).paint(red, "refused"); got != "\x1b[31mrefused\x1b[0m" {
		t.Errorf("%q, want it red", got)
	}
}

// Other people can write any text into a cell. No cell breaks the table or
// reaches the terminal as a control sequence, except one with a colour.
func TestTableShowsWhatCannotBeSeen(t *testing.T) {
	var table textTable
	table.row("WHY", "BY")
	table.row("a\nb\tc", "\x1b[31mop")
	table.row("d", "e")
	table.painted(session{color: true}.paint(red, "full"))
	var out stream
	testkit.OK(t, table.write(&out, 0))
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
		testkit.OK(t, tableOfPeople().write(&out, width))
		if out.String() != want {
			t.Errorf("with %d characters:\n%s\nwant:\n%s", width, &out, want)
		}
	}
}

// Commands write their tables for the terminal's width, and for a file with all columns. No word is
// lost, whatever the width is. No line is longer than the terminal, except a sentence and a word
// that is too long itself.
func TestCommandsKnowHowWideTheTerminalIs(t *testing.T) {
	const posts = "replay ../../../docs/traffic/posts.csv --columns time=created_at,user=author_id --activity create_post"
	for _, line := range []string{"limits", posts, posts + " --limit 2/1m", posts + " --limit 2/1m --compare 3/1m"} {
		_, whole, _ := command(t, app.All, line)
		for _, width := range []int{300, 120, 80, 60, 40, 30, 20, 10, 2, 1} {
			_, out, _ := session{page: app.All, width: width}.does(t, strings.Fields(line)...)
			if width == 300 && out != whole {
				t.Errorf("guards %s prints\n%s\nto a wide terminal, want what a file gets:\n%s", line, out, whole)
			}
			words := strings.Join(strings.Fields(out), " ")
			for word := range strings.FieldsSeq(whole) {
				if !strings.Contains(words, word) && strings.ToUpper(word) != word {
					t.Errorf("guards %s, with a width of %d: %q is lost\n%s", line, width, word, out)
				}
			}
			for row := range strings.Lines(out) {
				row = strings.TrimSuffix(row, "\n")
				if n := characters(row); width >= 40 && n > width && strings.Contains(row, "  ") || strings.HasSuffix(row, " ") {
					t.Errorf("guards %s, with a width of %d: a line has %d characters: %q", line, width, n, row)
				}
			}
		}
	}
}

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		ms   float64
		want string
	}{
		{0, "0 ms"}, {0.0001, "1 ms"}, {998.1, "999 ms"}, {999.1, "1 s"},
		{1, "1 ms"}, {999, "999 ms"}, {1000, "1 s"}, {41001, "42 s"}, {119_000, "119 s"}, {120_000, "2 min"},
		{120_001, "3 min"}, {3_540_000, "59 min"}, {3_540_001, "1 h 0 min"}, {4_140_000, "1 h 9 min"}, {7_140_000, "1 h 59 min"}, {7_200_000, "2 h 0 min"}, {43_199_999, "12 h 0 min"},
	} {
		if got := wait(time.Duration(tt.ms * float64(time.Millisecond))); got != tt.want {
			t.Errorf("wait of %v ms is %q, want %q", tt.ms, got, tt.want)
		}
	}
}
