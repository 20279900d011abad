package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/replay"
	"github.com/cric-talk/guards/internal/replay/plot"
)

type replayCommand struct {
	File     string   `arg:"" help:"Recorded traffic: CSV with the header time,user,activity, or JSON lines with these names; - is standard input."`
	Activity string   `required:"" placeholder:"A" help:"The activity to replay; lines of others are left out."`
	Limit    []string `sep:"none" placeholder:"RATE" help:"What to try, such as 20/1m, 100/12h or 1/5s; given again, all have to allow. Else the activity's own limit."`
	Policy   *string  `enum:"fixed,log,sliding,bucket,reservoir" placeholder:"KIND" help:"How --limit limits: ${enum} (fixed)."`
	Burst    int64    `placeholder:"N" help:"With --policy bucket, how many at once (as many as RATE says)."`
	Plot     string   `placeholder:"OUT.svg" help:"Draw the timeline of the user held up most, or of --user."`
	User     string   `placeholder:"ID" help:"Whose timeline to draw."`
	JSON     bool     `name:"json" help:"Print one JSON document."`
}

// Help is the command's own help.
func (replayCommand) Help() string {
	return `It counts on the embedded store, by the times in the file, and nothing else.
Lines are in order of time: Unix milliseconds, or RFC 3339. Examples:
  guards replay traffic.csv --activity create_post
  guards replay traffic.csv --activity create_post --limit 20/1m --plot out.svg
  guards replay traffic.csv --activity create_post --limit 10/1m --policy bucket --burst 15
  guards replay traffic.csv --activity create_post --limit 10/1m --limit 200/1d
  zcat traffic.jsonl.gz | guards replay - --activity pin --json`
}

// Run replays the file, twice where there is a timeline to draw.
func (c *replayCommand) Run(ctx context.Context, con console) error {
	policy, err := c.policy()
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		return err
	}
	in, err := openRecord(c.File, c.Plot != "")
	if err != nil {
		return err
	}
	defer in.close()
	r := &replay.Replay{Activity: c.Activity, Policy: policy, Progress: func(lines int64) { in.progress(con, lines) }}
	report, err := r.Run(ctx, replay.NewTraffic(in.name, in))
	con.told()
	if err != nil {
		return err
	}
	if report.From >= someSeconds && report.To < someMillis {
		_, _ = fmt.Fprintln(con.err, "guards: the times are of 1970: Unix seconds are no Unix milliseconds")
	}
	if c.JSON {
		err = con.printJSON(report)
	} else {
		err = con.printReport(report)
	}
	if err != nil || c.Plot == "" {
		return err
	}
	return c.plot(ctx, con, r, in, report)
}

// Times between them are likely seconds, of the years 2001 to 5138.
const (
	someSeconds = 1_000_000_000
	someMillis  = 100_000_000_000
)

// plot replays one user's requests once more, and draws them.
func (c *replayCommand) plot(ctx context.Context, con console, r *replay.Replay, in *record, report *replay.Report) error {
	if err := in.rewind(); err != nil {
		return err
	}
	timeline, err := r.Timeline(ctx, replay.NewTraffic(in.name, in), report, c.User)
	con.told()
	if err != nil {
		return err
	}
	svg, err := os.Create(c.Plot)
	if err != nil {
		return err
	}
	return errors.Join(plot.SVG(svg, timeline), svg.Close())
}

// policy is what the flags ask for.
func (c *replayCommand) policy() (ratelimit.Policy, error) {
	if len(c.Limit) > 0 {
		kind := "fixed"
		if c.Policy != nil {
			kind = *c.Policy
		}
		p, err := replay.Policy(kind, c.Limit, c.Burst)
		if err != nil {
			return nil, fmt.Errorf("--limit %s: %w", strings.Join(c.Limit, " --limit "), err)
		}
		return p, nil
	}
	if c.Policy != nil || c.Burst != 0 {
		return nil, errors.New("--policy and --burst go with --limit: the activity's own limit has its own")
	}
	rules, err := owner(c.Activity)
	if err != nil {
		return nil, err
	}
	if a, _ := rules.Activity(c.Activity); !a.Unlimited {
		return a.Limit, nil
	}
	return nil, fmt.Errorf("%s is unlimited: give a --limit to try, such as 20/1m", c.Activity)
}

func (c *replayCommand) validate() error {
	if c.Plot != "" && !strings.HasSuffix(c.Plot, ".svg") {
		return input.Invalid("--plot", input.Show(c.Plot), "the name of a file that ends in .svg")
	}
	if len(c.Activity) < 1 || len(c.Activity) > 36 {
		return input.Invalid("--activity", input.Show(c.Activity), "1 to 36 characters")
	}
	if c.User != "" && c.Plot == "" {
		return errors.New("--user goes with --plot")
	}
	return nil
}

// printReport writes a report for people.
func (c console) printReport(r *replay.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by %s: %s of %s from %s to %s\n\n", r.Activity, r.Policy,
		counted(r.Requests, "request"), counted(r.Users, "user"), moment(r.From), moment(r.To))
	share := func(n int64) string {
		return fmt.Sprintf("%*s  %5.1f %%", len(grouped(r.Requests)), grouped(n), 100*float64(n)/float64(r.Requests))
	}
	fmt.Fprintf(&b, "allowed  %s\nrefused  %s\n", share(r.Allowed), share(r.Refused))
	if r.Delayed > 0 {
		fmt.Fprintf(&b, "delayed  %s\n", share(r.Delayed))
	}
	if r.HeldUp > 0 {
		fmt.Fprintf(&b, "\n%s held up, for up to %s; the most:\n\n", counted(r.HeldUp, "user"), waited(r.LongestWaitMs))
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "USER\tREQUESTS\tALLOWED\tREFUSED\tDELAYED\tLONGEST WAIT")
		for _, u := range r.Worst {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", u.ID, grouped(u.Requests), grouped(u.Allowed), grouped(u.Refused),
				grouped(u.Delayed), waited(u.LongestWaitMs))
		}
		_ = w.Flush()
	}
	if r.OtherActivities > 0 {
		fmt.Fprintf(&b, "\n%s of other activities left out\n", counted(r.OtherActivities, "line"))
	}
	if r.OutOfOrder > 0 {
		fmt.Fprintf(&b, "\n%s out of order, by up to %s: the clock stepped back\n", counted(r.OutOfOrder, "line"), waited(r.OutOfOrderMs))
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

func waited(ms int64) string { return wait(time.Duration(ms) * time.Millisecond) }

// counted is a number of things.
func counted(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return grouped(n) + " " + thing
}

// moment is a time in words, in UTC.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }
