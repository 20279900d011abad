package command

import (
	"encoding/json"
	"io"
	"time"

	"github.com/cric-talk/guards/internal/limits"
)

// A console connects a command with the outside: streams, a clock and the
// project's guards.
type console struct {
	in       io.Reader        // the answers to questions; nil: no person can answer
	out, err io.Writer        // out gets results, err everything else
	color    bool             // out is a terminal that shows colours
	screen   bool             // out is a terminal that can be cleared
	width    int              // characters in a line of out, if it is a terminal with fewer than 80; else 0
	progress bool             // err is a terminal on which a line can be replaced
	guards   limits.Guards    // those of the project
	now      func() time.Time // decides what is counted and what has expired; nil: time.Now
}

// printJSON writes v as indented JSON.
func (c console) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine writes v as one line of JSON.
func (c console) printLine(v any) error { return json.NewEncoder(c.out).Encode(v) }
