package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/replay"
	"github.com/cric-talk/guards/internal/replay/plot"
)

type replayCommand struct {
	File     string `arg:"" help:"Recorded traffic: CSV with the header time,user,activity, or JSON lines with these names. - is standard input."`
	Activity string `required:"" placeholder:"A" help:"The activity to replay. Lines of other activities are skipped."`
	Limit    string `placeholder:"LIMIT" help:"The limit to try, such as 20/1m, \"log 100/12h\" or \"minute: 10/1m, day: 200/1d\". Default: the activity's own limit."`
	Plot     string `placeholder:"OUT.svg" help:"Draw the timeline of the user who was held up most, or of --user."`
	User     string `placeholder:"ID" help:"The user whose timeline to draw."`
	JSON     bool   `name:"json" help:"Print one JSON document."`
}

// Help returns the text below the command's flags.
func (replayCommand) Help() string {
	return `Each request is decided at the time that the file gives, and counted in memory.
Lines are in order of time: Unix milliseconds, or RFC 3339. A limit is written as
guards limits shows it. Examples:
  guards replay traffic.csv --activity create_post
  guards replay traffic.csv --activity create_post --limit 20/1m --plot out.svg
  guards replay traffic.csv --activity create_post --limit "bucket 10/1m burst 15"
  guards replay traffic.csv --activity create_post --limit "minute: 10/1m, day: 200/1d"
  zcat traffic.jsonl.gz | guards replay - --activity pin --json`
}

// Run replays the file. If there is a timeline to draw, it reads the file
// twice.
func (c *replayCommand) Run(ctx context.Context, con console) error {
	p, err := c.policy()
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
	r := &replay.Replay{Activity: c.Activity, Policy: p, Progress: func(lines int64) { in.progress(con, lines) }}
	report, err := r.Run(ctx, replay.NewTraffic(in.name, in))
	con.told()
	if err != nil {
		return err
	}
	if report.From >= someSeconds && report.To < someMillis {
		con.note("the times are in 1970: they look like Unix seconds, and replay reads Unix milliseconds")
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

// Numbers between these two are probably Unix seconds, from the years 2001 to
// 5138.
const (
	someSeconds = 1_000_000_000
	someMillis  = 100_000_000_000
)

// policy returns the limit to replay.
func (c *replayCommand) policy() (policy.Policy, error) {
	if c.Limit != "" {
		p, err := policy.Parse(c.Limit)
		if err != nil {
			return p, fmt.Errorf("--limit: %w", err)
		}
		return p, nil
	}
	_, a, err := find(c.Activity)
	if err != nil || !a.Unlimited {
		return a.Limit, err
	}
	return policy.Policy{}, fmt.Errorf("%s is unlimited: give a --limit to try, such as 20/1m", c.Activity)
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

// plot replays the requests of one user again and draws them.
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
