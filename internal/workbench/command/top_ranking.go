package command

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A ranked is one user's use of one activity.
type ranked struct {
	UserID        string `json:"userId"`
	Activity      string `json:"activity"`
	Name          string `json:"name,omitzero"` // the limit, if the activity has several
	Limit         int64  `json:"limit"`
	ActivityCount int64  `json:"activityCount"`
	Percent       int64  `json:"percent"`
	WaitTime      int64  `json:"waitTime"` // milliseconds until one more action can pass
	ResetAt       int64  `json:"resetAt"`  // Unix milliseconds
}

// A ranking holds the users who have used most of their limits. Its memory does
// not grow with the table.
type ranking struct {
	tableName
	At    time.Time `json:"at"`
	Items int64     `json:"items"` // that were read
	Units float64   `json:"readUnits"`
	Near  int       `json:"near"`  // the least share that is shown, in percent
	Found int64     `json:"found"` // users and activities at or above near
	Users []ranked  `json:"users"` // the first ones of them

	rows    int
	guards  limits.Guards
	only    string       // show only this activity; empty: show all
	changed *live.Limits // what operators changed
	seen    int64        // items of users so far
}

// add adds an item, if its window is current and its user is near the limit.
func (r *ranking) add(k ratelimit.Key, item ratelimit.Item) {
	_, a, ok := r.guards.Activity(k.Activity)
	if !ok || r.only != "" && r.only != k.Activity {
		return
	}
	now := r.At.UnixMilli()
	ruling, p := rulingOn(r.changed, a, k.UserID, "", r.At)
	if p.IsZero() || ruling != nil && (ruling.Role != "" || ruling.Mode == string(guard.Off)) { // no request is limited
		return
	}
	if window, _ := p.Item(now); window != k.Window {
		return
	}
	f := mostUsed(p.Read(now, 1, item.State))
	percent := share(f)
	if percent < int64(r.Near) {
		return
	}
	r.Found++
	r.Users = append(r.Users, ranked{k.UserID, k.Activity, f.Name, f.Limit, f.Used, percent, f.Wait.Milliseconds(), f.ResetAt})
	if len(r.Users) >= 4*r.rows {
		r.end()
	}
}

// mostUsed returns the figures of the limit of which most is used, if there are
// several. That need not be the limit with the fewest actions left: 26 of 30 is
// more than 2 of 5.
func mostUsed(f policy.Reading) policy.Reading {
	for _, one := range f.Each {
		if share(one) > share(f) {
			f = one
		}
	}
	return f
}

// share returns how much of a limit is used, in percent.
func share(f policy.Reading) int64 { return f.Used * 100 / f.Limit }

// end sorts the users and drops those who are not shown.
func (r *ranking) end() {
	slices.SortFunc(r.Users, func(a, b ranked) int {
		return cmp.Or(-cmp.Compare(a.Percent, b.Percent), -cmp.Compare(a.ActivityCount, b.ActivityCount),
			cmp.Compare(a.UserID, b.UserID), cmp.Compare(a.Activity, b.Activity))
	})
	r.Users = r.Users[:min(len(r.Users), r.rows)]
}

// print writes the ranking.
func (r *ranking) print(con console, c *topCommand) error {
	if c.JSON {
		return con.printLine(r)
	}
	_, err := fmt.Fprintf(con.out, "%s UTC: %d at %d %% of a limit or more, among %s (%s), in %s\n",
		r.At.Format(time.TimeOnly), r.Found, r.Near, several(r.Items, "item"), units(r.Units), c.where())
	if err != nil || len(r.Users) == 0 {
		return err
	}
	var t textTable
	t.row("USER", "ACTIVITY", "USED", "WAIT", "")
	for _, u := range r.Users {
		t.row(u.UserID, limitOf(u.Activity, u.Name), fmt.Sprintf("%d/%d", u.ActivityCount, u.Limit), waitMs(u.WaitTime))
		t.painted(con.barOf(u.Percent))
	}
	if rest := r.Found - int64(len(r.Users)); rest > 0 {
		t.row(fmt.Sprintf("and %d more: see --rows", rest))
	}
	return t.write(con.out, con.width)
}

// barOf returns a bar with a percentage.
func (c console) barOf(percent int64) string {
	full := int(min(barWidth, barWidth*percent/100))
	color := yellow
	if percent >= 100 {
		color = red
	}
	return c.paint(color, fmt.Sprintf("[%s%s] %d %%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), percent))
}

// units returns read units in words.
func units(n float64) string {
	if whole := int64(n); float64(whole) == n {
		return several(whole, "read unit")
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " read units"
}
