package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/workbench/replay"
)

// printReport writes a report for people.
func (c console) printReport(r *replay.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s with %s: %s of %s from %s to %s\n\n", r.Activity, r.Policy,
		several(r.Requests, "request"), several(r.Users, "user"), moment(r.From), moment(r.To))
	share := func(n int64) string {
		return fmt.Sprintf("%*s  %5.1f %%", len(grouped(r.Requests)), grouped(n), 100*float64(n)/float64(r.Requests))
	}
	fmt.Fprintf(&b, "allowed  %s\nrefused  %s\n", share(r.Allowed), share(r.Refused))
	if r.Delayed > 0 {
		fmt.Fprintf(&b, "delayed  %s\n", share(r.Delayed))
	}
	if r.HeldUp > 0 {
		fmt.Fprintf(&b, "\n%s held up, for up to %s; the most:\n\n", several(r.HeldUp, "user"), inWords(r.LongestWaitMs))
		if err := worst(r.Worst).write(&b, c.width); err != nil {
			return err
		}
	}
	unusual(&b, r)
	_, err := io.WriteString(c.out, b.String())
	return err
}

// unusual writes what a reader should know about the lines.
func unusual(b *strings.Builder, r *replay.Report) {
	if r.OtherActivities > 0 {
		fmt.Fprintf(b, "\n%s of other activities skipped\n", several(r.OtherActivities, "line"))
	}
	if r.OutOfOrder > 0 {
		fmt.Fprintf(b, "\n%s out of order, by up to %s: the clock stepped back\n", several(r.OutOfOrder, "line"), inWords(r.OutOfOrderMs))
	}
	badLines(b, r.BadLines, r.FirstBad)
}

// badLines writes how many lines were skipped because they are no requests.
func badLines(b *strings.Builder, n int64, first []string) {
	switch {
	case n > int64(len(first)):
		fmt.Fprintf(b, "\n%s skipped; the first %d:\n", several(n, "bad line"), len(first))
	case n > 0:
		fmt.Fprintf(b, "\n%s skipped:\n", several(n, "bad line"))
	}
	for _, line := range first {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// printComparison writes a table with a row for each limit.
func (c console) printComparison(all []*replay.Report) error {
	var b strings.Builder
	r := all[0]
	fmt.Fprintf(&b, "%s: %s of %s from %s to %s\n\n", r.Activity, several(r.Requests, "request"), several(r.Users, "user"), moment(r.From), moment(r.To))
	var t textTable
	t.row("LIMIT", "ALLOWED", "REFUSED", "DELAYED", "USERS HELD UP", "LONGEST WAIT")
	for _, r := range all {
		t.row(r.Policy, fmt.Sprintf("%s (%.1f %%)", grouped(r.Allowed), 100*float64(r.Allowed)/float64(r.Requests)),
			grouped(r.Refused), grouped(r.Delayed), grouped(r.HeldUp), inWords(r.LongestWaitMs))
	}
	if err := t.write(&b, c.width); err != nil {
		return err
	}
	unusual(&b, r)
	_, err := io.WriteString(c.out, b.String())
	return err
}

// worst returns the table of the users who were held up most.
func worst(users []replay.User) (t textTable) {
	t.row("USER", "REQUESTS", "ALLOWED", "REFUSED", "DELAYED", "LONGEST WAIT")
	for _, u := range users {
		t.row(u.ID, grouped(u.Requests), grouped(u.Allowed), grouped(u.Refused), grouped(u.Delayed), inWords(u.LongestWaitMs))
	}
	return t
}

// inWords returns a time in words. For 0 it returns "0 ms", where waitMs returns
// an empty text.
func inWords(ms int64) string { return wait(time.Duration(ms) * time.Millisecond) }

// moment returns a time in words, in UTC.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }
