package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
)

type statusCommand struct {
	User string `required:"" placeholder:"ID" help:"Whose."`
	Tier string `placeholder:"T" help:"The user's plan."`
	JSON bool   `name:"json" help:"Print one JSON array."`
	tableFlags
}

// Help is the command's own help.
func (statusCommand) Help() string {
	return `Examples:
  guards status --user u1
  guards status --user u1 --tier premium --json`
}

// A standing is where a user stands with one activity.
type standing struct {
	Function      string `json:"function"`
	Activity      string `json:"activity"`
	Limit         int64  `json:"limit"`
	ActivityCount int64  `json:"activityCount"`
	Remaining     int64  `json:"remaining"`
	WaitTime      int64  `json:"waitTime"` // milliseconds until one more action can pass
	ResetAt       int64  `json:"resetAt"`  // Unix milliseconds
}

// Run reads all of a user at once, and shows each activity that is limited.
func (c *statusCommand) Run(ctx context.Context, con console) error {
	if err := input.CheckUserID(c.User); err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	items, err := table.New(store.Table()).User(ctx, c.User)
	if err != nil {
		return input.NewUnavailable(err)
	}
	changed, err := follow(ctx, dynamolive.New(store.Table()))
	if err != nil {
		return err
	}
	list := standings(c.User, c.Tier, items, changed.Limits(), con.now())
	if c.JSON {
		return con.printJSON(list)
	}
	var lines strings.Builder
	w := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ACTIVITY\tUSED\tLEFT\tWAIT")
	for _, s := range list {
		cooldown := ""
		if s.WaitTime > 0 {
			cooldown = wait(time.Duration(s.WaitTime) * time.Millisecond)
		}
		_, _ = fmt.Fprintf(w, "%s\t%d/%d\t%d\t%s\n", s.Activity, s.ActivityCount, s.Limit, s.Remaining, cooldown)
	}
	return con.printTable(w, &lines)
}

// standings are by the limits as operators have changed them.
func standings(user, tier string, items map[ratelimit.Key]ratelimit.Item, changed *live.Limits, at time.Time) []standing {
	list := []standing{}
	now := at.UnixMilli()
	if _, granted := changed.Granted(user, at); granted != "" {
		tier = granted
	}
	for _, g := range limits.All {
		for _, a := range g.Activities {
			a, _ := changed.Activity(a)
			p := a.For(tier)
			if p == nil {
				continue
			}
			s := items[ratelimit.Key{UserID: user, Activity: a.Name, Window: p.Place(now).Window}].State
			limit, _ := p.Quota()
			f := p.Figures(now, s)
			list = append(list, standing{
				Function: g.Name, Activity: a.Name, Limit: limit, ActivityCount: f.Used, Remaining: f.Remaining,
				WaitTime: p.Wait(now, 1, s).Milliseconds(), ResetAt: f.ResetAt,
			})
		}
	}
	return list
}
