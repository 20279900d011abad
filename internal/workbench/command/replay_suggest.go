package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// suggest searches for the lowest limit. It keeps the requests in a temporary
// file.
func (c *replayCommand) suggest(ctx context.Context, con console, r *replay.Replay, t *traffic.Reader) (err error) {
	share, err := replay.ParseShare(c.Suggest)
	if err != nil {
		return fmt.Errorf("--suggest: %w", err)
	}
	file, err := os.CreateTemp("", "guards-replay-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()
	got, err := r.Suggest(ctx, t, share, file, func(p policy.Policy) { con.tell("trying " + p.String()) })
	con.told()
	if ctx.Err() != nil {
		con.note("stopped before the end of the search")
	}
	if got == nil {
		return err
	}
	if c.JSON {
		return errors.Join(err, con.printJSON(got))
	}
	return errors.Join(err, con.printSuggestion(got, share))
}

// printSuggestion writes a suggestion for people.
func (c console) printSuggestion(s *replay.Suggestion, wanted replay.Share) error {
	var b strings.Builder
	is := "is the lowest limit that leaves"
	if s.Interrupted {
		is = "is enough, and a lower limit may be, to leave"
	}
	fmt.Fprintf(&b, "%s %s %s of the users of %s untouched\n\n", s.Policy, is, wanted, s.Activity)
	row := func(name string, n int64, share float64) {
		fmt.Fprintf(&b, "%-9s  %*s  %6.2f %%\n", name, len(grouped(s.Users)), grouped(n), 100*share)
	}
	row("untouched", s.Users-s.HeldUp, s.Share)
	row("held up", s.HeldUp, 1-s.Share)
	fmt.Fprintf(&b, "\nfrom %s of %s\n", several(s.Requests, "request"), several(s.Users, "user"))
	badLines(&b, s.BadLines, s.FirstBad)
	_, err := io.WriteString(c.out, b.String())
	return err
}
