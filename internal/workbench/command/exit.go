package command

import (
	"errors"
	"fmt"

	"github.com/cric-talk/guards/internal/input"
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
func (c console) fail(err error) int {
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
func (c console) note(line string) { _, _ = fmt.Fprintln(c.err, "guards:", line) }
