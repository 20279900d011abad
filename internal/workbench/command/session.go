package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
)

// A session connects a command with the outside: streams, a clock and the
// project's guards.
type session struct {
	in       io.Reader        // the answers to questions; nil: no person can answer
	out, err io.Writer        // out gets results, err everything else
	color    bool             // out is a terminal that shows colours
	screen   bool             // out is a terminal that can be cleared
	width    int              // characters in a line of out, if it is a terminal; else 0
	progress bool             // err is a terminal that can replace a line
	page     []guards.Guard   // the page of the project
	pageFile string           // the limits.json that has it; empty: it is in the program
	guards   limits.Guards    // its guards; nil if the page has a mistake
	now      func() time.Time // decides what is counted and what has expired; nil: time.Now

	wrongPage error // of pageFile

	folder string           // if its project has other limits, commands tell that; empty: not checked
	built  *debug.BuildInfo // how this program was built; set if folder is
}

func (c session) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (c session) printLine(v any) error { return json.NewEncoder(c.out).Encode(v) }

// print prints v as one line of JSON if asJSON is set, and otherwise lines for people.
func (c session) print(asJSON bool, v any, lines ...string) error {
	if asJSON {
		return c.printLine(v)
	}
	_, err := fmt.Fprintln(c.out, strings.Join(lines, "\n"))
	return err
}

// The colours, as terminals number them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// terminal returns the session of this process, for a project with these guards.
func terminal(page []guards.Guard) session {
	c := session{
		page: page,
		out:  os.Stdout, err: os.Stderr, color: colorful(os.Stdout),
		screen:   os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd())),
		progress: os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stderr.Fd())),
	}
	if built, ok := debug.ReadBuildInfo(); ok {
		c.folder, c.built = ".", built
	}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		c.width = width
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		c.in = os.Stdin
	}
	return c
}

// colorful reports whether f is a terminal whose user wants colours: see
// no-color.org.
func colorful(f *os.File) bool {
	return wantsColors() && term.IsTerminal(int(f.Fd()))
}

// wantsColors reports whether the user wants colours on a terminal.
func wantsColors() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// paint returns s in a colour, if the session shows colours.
func (c session) paint(color, s string) string {
	if !c.color {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// barWidth is the length of a bar, in characters.
const barWidth = 16

// bar shows on one line of a terminal how many parts of a long task are done,
// and the figures so far.
func (c session) bar(done, parts int, soFar string) {
	full := barWidth * done / parts
	c.tell(fmt.Sprintf("[%s%s] %d %%  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*done/parts, soFar))
}

// tell shows the figures so far of a long task whose end is unknown.
func (c session) tell(soFar string) {
	if c.progress {
		_, _ = fmt.Fprint(c.err, "\r", soFar, clearRest)
	}
}

// clearLine removes the line that bar and tell write.
func (c session) clearLine() { c.tell("") }

const (
	clearScreen = "\x1b[H\x1b[2J" // also moves to the first line
	clearRest   = "\x1b[K"        // of the line, which can still show the end of a longer text
)

// The exit statuses.
const (
	done        = 0
	refused     = 1
	wrongUse    = 2
	unreachable = 3
	interrupted = 130 // Ctrl-C or SIGTERM, as shells report it, or a declined question
)

// These errors end a command that did nothing wrong.
var (
	errRefused     = errors.New("refused")
	errInterrupted = errors.New("interrupted")
	errDeclined    = errors.New("nothing was changed")
)

// fail prints err, if it needs a message, and returns the exit status.
func (c session) fail(err error) int {
	switch {
	case err == nil:
		return done
	case errors.Is(err, errRefused):
		return refused
	case errors.Is(err, errInterrupted):
		return interrupted
	}
	c.note(err.Error())
	if advice := adviceOn(err); advice != "" {
		c.note(advice)
	}
	if errors.Is(err, errDeclined) {
		return interrupted
	}
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		return unreachable
	}
	return wrongUse
}

// note writes one line about the command itself, which is not its result.
func (c session) note(line string) { _, _ = fmt.Fprintln(c.err, "guards:", line) }

// yesFlag belongs to commands that ask before they act.
type yesFlag struct {
	Yes bool `short:"y" help:"Do not ask."`
}

// confirm asks the question, unless --yes answers it. It returns nil if the
// answer is yes. It stops waiting for the answer when ctx ends. If no person
// can answer, the error suggests --yes and ends with the text of instead.
func (f yesFlag) confirm(ctx context.Context, env session, question, instead string) error {
	if f.Yes {
		return nil
	}
	if env.in == nil {
		return errors.New("there is nobody to ask: give --yes to go ahead" + instead)
	}
	_, _ = fmt.Fprintf(env.err, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(env.in).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		_, _ = fmt.Fprintln(env.err)
		return errInterrupted
	}
}
