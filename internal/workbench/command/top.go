package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
)

type topCommand struct {
	Activity string         `placeholder:"A" help:"This activity only."`
	Near     int            `default:"80" placeholder:"PERCENT" help:"Show users and subjects that have used at least this share of a limit (${default})."`
	Rows     int            `default:"20" placeholder:"N" help:"Show at most N rows (${default})."`
	Watch    bool           `help:"Read the table again and again, until Ctrl-C."`
	Every    *time.Duration `placeholder:"TIME" help:"How long --watch waits after it has read the table (10s)."`
	JSON     bool           `name:"json" help:"Print one line of JSON for each time that the table is read."`
	yesFlag
	tableFlags
}

func (topCommand) Help() string {
	return `This reads the whole table. It states the cost first and asks.
The table does not tell a user's tier. So limits are those without a tier, unless
one was granted, and they have the number of their text, also where a caller can give
another one. So a user of a higher tier or number can have used more than the limit.
With --json, the row of a limit with such a number has "max": true.
Activities of a group share an item, which has one row: that of the activity and the
limit of which most is used. With --activity, it is that activity's row. A subject is in
the list beside the users, such as room=r42. Instances can hold some of what is used of a
prepaid limit; the table does not tell how much. So the count is marked, as in 1200/60000
prepaid, with --json as "prepaid": true, even if only another activity of the group is
prepaid. Items that can't be read are listed below the users, with what helps.
Examples:
  guards top
  guards top --activity {activity} --near 50
  guards top --watch --every 30s --yes
  guards top --yes --json`
}

func (c *topCommand) Run(ctx context.Context, env session) error {
	if err := c.validate(env); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if err := c.agree(ctx, env); err != nil {
		return err
	}
	if !c.Watch {
		found, err := c.read(ctx, env)
		if err == nil {
			return found.print(env, c)
		}
		if ctx.Err() != nil {
			env.note(fmt.Sprintf("stopped before the end, after %s for %s", plural(found.Items, "item"), units(found.Units)))
		}
		return err
	}
	return c.watch(ctx, env)
}

func (c *topCommand) validate(env session) error {
	switch {
	case c.Near < 1 || c.Near > 100:
		return input.Invalid("--near", fmt.Sprint(c.Near), "1 to 100 percent")
	case c.Rows < 1 || c.Rows > 10_000:
		return input.Invalid("--rows", fmt.Sprint(c.Rows), "1 to 10000")
	case c.Every != nil && !c.Watch:
		return errors.New("--every goes with --watch")
	case c.every() < time.Second:
		return input.Invalid("--every", c.every().String(), "at least 1s")
	case c.Activity != "":
		_, _, err := env.find(c.Activity)
		return err
	}
	return nil
}

func (c *topCommand) every() time.Duration {
	if c.Every == nil {
		return 10 * time.Second
	}
	return *c.Every
}

// agree states what the scan costs, and asks unless --yes is given.
func (c *topCommand) agree(ctx context.Context, env session) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cost, err := c.store.dynamo.Estimate(within)
	size := fmt.Sprintf("about %s for %s", plural(cost.Items, "item"), units(cost.Units))
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "AccessDeniedException" {
		size, err = "a number of items that is unknown without dynamodb:DescribeTable", nil
	}
	if err != nil {
		return input.NewUnavailable(err)
	}
	if c.Watch {
		size += ", every " + wait(c.every())
	}
	if c.Yes {
		env.note(fmt.Sprintf("this reads all of %s: %s", c.where(), size))
		return nil
	}
	return c.confirm(ctx, env, fmt.Sprintf("Read all of %s, %s?", c.where(), size), "")
}

// watch reads and prints until ctx ends.
func (c *topCommand) watch(ctx context.Context, env session) error {
	var total table.Cost
	times := int64(0)
	for {
		found, err := c.read(ctx, env)
		total.Units += found.Units
		if err == nil {
			times++
			if env.screen && !c.JSON {
				_, _ = fmt.Fprint(env.out, clearScreen)
			}
			err = found.print(env, c)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(c.every()):
		case <-ctx.Done():
			env.note(fmt.Sprintf("stopped after the table was read %s for %s", plural(times, "time"), units(total.Units)))
			return errInterrupted
		}
	}
}

func (c *topCommand) read(ctx context.Context, env session) (ranking, error) {
	changed, err := env.follow(ctx, c.store.live)
	if err != nil {
		return ranking{}, err
	}
	r := ranking{
		tableName: c.opened, At: env.now().UTC(), Near: c.Near, Users: []ranked{},
		guards: env.guards, counted: map[string][]limits.Activity{}, rows: c.Rows, changed: changed.Limits(),
	}
	for _, a := range env.guards.All {
		if c.Activity == "" || c.Activity == a.Name {
			r.counted[itemOf(a)] = append(r.counted[itemOf(a)], a)
		}
	}
	cost, err := c.store.dynamo.Items(ctx, func(k ratelimit.Key, item ratelimit.Item) {
		r.add(k, item)
		if r.seen++; r.seen%1000 == 0 {
			env.tell(plural(r.seen, "item"))
		}
	})
	env.clearLine()
	r.end()
	r.Items, r.Units = cost.Items, cost.Units
	if err != nil {
		return r, input.NewUnavailable(err)
	}
	return r, nil
}

// A ranked is how much a user, or all users in one subject, did of one activity.
type ranked struct {
	owner
	Activity      string `json:"activity"`
	Group         string `json:"group,omitzero"`   // the activity's
	Prepaid       bool   `json:"prepaid,omitzero"` // the item counts what instances hold, too, see leases
	Max           bool   `json:"max,omitzero"`     // the limit is the text's number, and a caller can give another
	Name          string `json:"name,omitzero"`    // the limit, if the activity has several
	Limit         int64  `json:"limit"`
	ActivityCount int64  `json:"activityCount"`
	Percent       int64  `json:"percent"`
	WaitTime      int64  `json:"waitTime"` // milliseconds until one more action can pass
	ResetAt       int64  `json:"resetAt"`  // Unix milliseconds
	Blocked       bool   `json:"blocked,omitzero"`
}

// A ranking holds the users and subjects that have used most of their limits. Its memory does
// not grow with the table.
type ranking struct {
	tableName
	At    time.Time `json:"at"`
	Items int64     `json:"items"` // that were read
	Units float64   `json:"readUnits"`
	Near  int       `json:"near"`  // the least share that is shown, in percent
	Found int64     `json:"found"` // users or subjects and activities at or above near
	Users []ranked  `json:"users"` // the first ones of them

	Unreadable unreadItems `json:"unreadable,omitempty"`

	rows    int
	guards  limits.Guards
	counted map[string][]limits.Activity // the activities to show, by the name of their items
	changed *live.Limits                 // what operators changed
	seen    int64                        // items of users so far
}

// add adds an item, if its window is current and its user is near the limit. The item
// of a group is added for the activity that is nearest to its limit.
func (r *ranking) add(k ratelimit.Key, item ratelimit.Item) {
	if r.Unreadable.add(r.guards, k, item, r.At) {
		return // its figures mean nothing
	}
	most, nearest := ranked{Percent: -1}, limits.Activity{}
	for _, a := range r.counted[k.Activity] {
		if one, ok := r.rank(k, a, item); ok && one.Percent > most.Percent {
			most, nearest = one, a
		}
	}
	if most.Percent < int64(r.Near) {
		return
	}
	most.Prepaid = leases(r.guards, r.changed, nearest, k.UserID, "", r.At)
	r.Found++
	r.Users = append(r.Users, most)
	if len(r.Users) >= 4*r.rows {
		r.end()
	}
}

// rank returns the use of a user or a subject of one of the activities that an item counts. It returns
// false if the item does not count for the activity now.
func (r *ranking) rank(k ratelimit.Key, a limits.Activity, item ratelimit.Item) (ranked, bool) {
	now := r.At.UnixMilli()
	t := termsOf(r.changed, a, k.UserID, "", r.At)
	if t.Exempt() || !a.Has(subjectOf(k.UserID)) || keyOf(k.UserID, a, now) != k {
		return ranked{}, false
	}
	f := t.Limit.Read(now, 1, item.State)
	for _, one := range f.Each { // the one with the fewest actions left can be another: 26 of 30 is more than 2 of 5
		if share(one) > share(f) {
			f = one
		}
	}
	most := t.Tier == "" && a.WithMax(subjectOf(k.UserID)) != nil
	return ranked{ownerOf(k.UserID), a.Name, a.Group, false, most, f.Name, f.Limit, f.Used, share(f), f.Wait.Milliseconds(), f.ResetAt, !t.Block.Until.IsZero()}, true
}

// share returns how much of a limit is used, in percent.
func share(f policy.Reading) int64 { return f.Used * 100 / f.Limit }

// end sorts the users and drops those who are not shown.
func (r *ranking) end() {
	slices.SortFunc(r.Users, func(a, b ranked) int {
		return cmp.Or(-cmp.Compare(a.Percent, b.Percent), -cmp.Compare(a.ActivityCount, b.ActivityCount),
			cmp.Compare(shown(a.key()), shown(b.key())), cmp.Compare(a.Activity, b.Activity))
	})
	r.Users = r.Users[:min(len(r.Users), r.rows)]
}

func (r *ranking) print(env session, c *topCommand) error {
	if c.JSON {
		return env.printLine(r)
	}
	var t textTable
	if len(r.Users) > 0 {
		t.head("USER", "ACTIVITY", "USED", "WAIT", "")
	}
	for _, u := range r.Users {
		t.row(shown(u.key()), limitOf(u.Activity, u.Name), used(u.ActivityCount, u.Limit, u.Prepaid), waitMs(u.WaitTime))
		bar := env.barOf(u.Percent)
		if u.Blocked {
			bar += " blocked"
		}
		t.painted(bar)
	}
	if rest := r.Found - int64(len(r.Users)); rest > 0 {
		t.row(fmt.Sprintf("and %d more: see --rows", rest))
	}
	t.unreadable(r.Unreadable)
	t.explain(slices.ContainsFunc(r.Users, func(u ranked) bool { return u.Prepaid }), countsLeases)
	t.explain(slices.ContainsFunc(r.Users, func(u ranked) bool { return u.Max }), byText)
	return t.below(env, fmt.Sprintf("%s UTC: %d at %d %% of a limit or more, among %s (%s), in %s",
		r.At.Format(time.TimeOnly), r.Found, r.Near, plural(r.Items, "item"), units(r.Units), c.where()))
}

func (c session) barOf(percent int64) string {
	full := int(min(barWidth, barWidth*percent/100))
	color := yellow
	if percent >= 100 {
		color = red
	}
	return c.paint(color, fmt.Sprintf("[%s%s] %d %%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), percent))
}

func units(n float64) string {
	if whole := int64(n); float64(whole) == n {
		return plural(whole, "read unit")
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " read units"
}
