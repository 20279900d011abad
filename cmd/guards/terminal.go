package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colorful says whether f is a terminal whose user wants colours: see
// no-color.org.
func colorful(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

func (c console) paint(color, s string) string {
	if !c.color {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// terminal is the console of this process.
func terminal() console {
	c := console{
		out: os.Stdout, err: os.Stderr, color: colorful(os.Stdout),
		progress: os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stderr.Fd())),
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		c.in = os.Stdin
	}
	return c
}

// barWidth is the length of a bar, in characters.
const barWidth = 16

// bar shows how much of a long work is done, and what came of it so far, on one
// line of a terminal.
func (c console) bar(done, parts int, soFar string) {
	full := barWidth * done / parts
	c.tell(fmt.Sprintf("[%s%s] %d %%  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*done/parts, soFar))
}

// tell shows what came of a long work so far, where nobody knows how long it is.
func (c console) tell(soFar string) {
	if c.progress {
		_, _ = fmt.Fprint(c.err, "\r", soFar, clearRest)
	}
}

// told clears the line.
func (c console) told() { c.tell("") }

// clearRest clears what an earlier, longer text has left of a line.
const clearRest = "\x1b[K"

// grouped is n, at least 0, with commas between its thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
