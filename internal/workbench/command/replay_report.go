package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

func writeReport(b *strings.Builder, r *replay.Report, width int) {
	fmt.Fprintf(b, "%s with %s: %s of %s from %s to %s\n\n", r.Activity, r.Policy,
		plural(r.Requests, "request"), plural(r.Users, "user"), moment(r.From), moment(r.To))
	share := func(n int64) string {
		return fmt.Sprintf("%*s  %5.1f %%", len(grouped(r.Requests)), grouped(n), 100*float64(n)/float64(r.Requests))
	}
	fmt.Fprintf(b, "allowed  %s\nrefused  %s\n", share(r.Allowed), share(r.Refused))
	if r.Delayed > 0 {
		fmt.Fprintf(b, "delayed  %s\n", share(r.Delayed))
	}
	writeLimitedBy(b, r)
	if r.HeldUp > 0 {
		fmt.Fprintf(b, "\n%s held up, for up to %s; the most:\n\n", plural(r.HeldUp, "user"), inWords(r.LongestWaitMs))
		var t textTable
		t.head("USER", "REQUESTS", "ALLOWED", "REFUSED", "DELAYED", "LONGEST WAIT")
		for _, u := range r.Worst {
			t.row(u.ID, grouped(u.Requests), grouped(u.Allowed), grouped(u.Refused), grouped(u.Delayed), inWords(u.LongestWaitMs))
		}
		_ = t.write(b, width) // a Builder takes everything
	}
	exactly(b, r.Exact)
	unusual(b, r)
}

// exactly writes how the requests of a prepaid limit were decided.
func exactly(b *strings.Builder, prepaid bool) {
	if prepaid {
		b.WriteString("\nprepaid: decided exactly, without leases; guards can refuse a little more at full load\n")
	}
}

// unusual writes what a reader should know about the lines.
func unusual(b *strings.Builder, r *replay.Report) {
	if r.OtherActivities > 0 {
		fmt.Fprintf(b, "\n%s of other activities skipped\n", plural(r.OtherActivities, "line"))
	}
	if r.Numbered > 0 {
		fmt.Fprintf(b, "\n%s came with a number of the caller\n", plural(r.Numbered, "request"))
	}
	writeSources(b, r.Sources)
	if r.OutOfOrder > 0 {
		fmt.Fprintf(b, "\n%s out of order, by up to %s\n", plural(r.OutOfOrder, "line"), inWords(r.OutOfOrderMs))
	}
	badLines(b, r.BadLines, r.FirstBad)
}

// badLines writes how many lines were skipped because they are no requests.
func badLines(b *strings.Builder, n int64, first []string) {
	switch {
	case n > int64(len(first)):
		fmt.Fprintf(b, "\n%s skipped; the first %d:\n", plural(n, "bad line"), len(first))
	case n > 0:
		fmt.Fprintf(b, "\n%s skipped:\n", plural(n, "bad line"))
	}
	for _, line := range first {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// writeComparison writes a table with a row for each limit.
func writeComparison(b *strings.Builder, all []*replay.Report, width int) {
	r := all[0]
	fmt.Fprintf(b, "%s: %s of %s from %s to %s\n\n", r.Activity, plural(r.Requests, "request"), plural(r.Users, "user"), moment(r.From), moment(r.To))
	var t textTable
	t.head("LIMIT", "ALLOWED", "REFUSED", "DELAYED", "USERS HELD UP", "LONGEST WAIT")
	for _, r := range all {
		t.row(r.Policy, fmt.Sprintf("%s (%.1f %%)", grouped(r.Allowed), 100*float64(r.Allowed)/float64(r.Requests)),
			grouped(r.Refused), grouped(r.Delayed), grouped(r.HeldUp), inWords(r.LongestWaitMs))
	}
	_ = t.write(b, width) // a Builder takes everything
	exactly(b, slices.ContainsFunc(all, func(r *replay.Report) bool { return r.Exact }))
	unusual(b, r)
}

func writeSuggestion(b *strings.Builder, s *replay.Suggestion, wanted replay.Share) {
	is := "is the lowest limit that leaves"
	if s.Interrupted {
		is = "is enough, and a lower limit may be, to leave"
	}
	fmt.Fprintf(b, "%s %s %s of the users of %s untouched\n\n", s.Policy, is, wanted, s.Activity)
	row := func(name string, n int64, share float64) {
		fmt.Fprintf(b, "%-9s  %*s  %6.2f %%\n", name, len(grouped(s.Users)), grouped(n), 100*share)
	}
	row("untouched", s.Users-s.HeldUp, s.Share)
	row("held up", s.HeldUp, 1-s.Share)
	fmt.Fprintf(b, "\nfrom %s of %s\n", plural(s.Requests, "request"), plural(s.Users, "user"))
	exactly(b, s.Exact)
	writeSources(b, s.Sources)
	badLines(b, s.BadLines, s.FirstBad)
}

// inWords returns a time in words. Unlike waitMs, it returns "0 ms" for 0.
func inWords(ms int64) string { return wait(time.Duration(ms) * time.Millisecond) }

// moment returns a time in words, in UTC.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

// writeSources writes how the files were read, and how to read them otherwise.
func writeSources(b *strings.Builder, all []traffic.Source) {
	for _, s := range all {
		if s.Format != "" {
			fmt.Fprintf(b, "\nread as %s", s.Format)
			if s.User != "" {
				users := strings.ReplaceAll(s.User, ", ", ", or else ")
				if s.Address {
					users += ", an address"
				}
				fmt.Fprintf(b, "; the user is %s; --columns user=NAME names another field", users)
			}
			b.WriteByte('\n')
		}
		switch s.Zone {
		case "":
		case time.UTC.String():
			b.WriteString("\ntimes without a zone are UTC; --zone Europe/Berlin reads them in another zone\n")
		default:
			fmt.Fprintf(b, "\ntimes without a zone are those of %s\n", s.Zone)
		}
		if s.Backwards {
			b.WriteString("\nread from its end, because the file runs backwards\n")
		}
	}
}

// writeLimitedBy writes how many requests the users' own limit refused, and each subject.
func writeLimitedBy(b *strings.Builder, r *replay.Report) {
	var each []string
	for _, name := range slices.Sorted(maps.Keys(r.LimitedBy)) {
		who := name
		if name == r.Activity {
			who = "the user's own limit"
		}
		each = append(each, fmt.Sprintf("%s %s", who, grouped(r.LimitedBy[name])))
	}
	if len(each) > 0 {
		fmt.Fprintf(b, "refused by: %s\n", strings.Join(each, ", "))
	}
}
