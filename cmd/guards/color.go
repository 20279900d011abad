package main

import (
	"os"

	"golang.org/x/term"
)

const (
	red   = "31"
	green = "32"
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
	c := console{out: os.Stdout, err: os.Stderr, color: colorful(os.Stdout), progress: term.IsTerminal(int(os.Stderr.Fd()))}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		c.in = os.Stdin
	}
	return c
}
