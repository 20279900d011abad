package replay

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A Report is the result for all of the traffic.
type Report struct {
	Activity string `json:"activity"`
	Policy   string `json:"policy"` // its text form
	Limit    int64  `json:"limit"`  // the most actions at once
	WindowMs int64  `json:"windowMs"`
	Exact    bool   `json:"exact,omitempty"` // a limit is prepaid, and each request was decided exactly, without leases

	From int64 `json:"from"` // time of the first request, Unix milliseconds
	To   int64 `json:"to"`   // time of the last one

	Requests      int64   `json:"requests"`
	Allowed       int64   `json:"allowed"`
	Refused       int64   `json:"refused"`
	Delayed       int64   `json:"delayed"`      // given a place in a later window
	RefusedShare  float64 `json:"refusedShare"` // share of the requests, 0 to 1
	LongestWaitMs int64   `json:"longestWaitMs"`

	LimitedBy map[string]int64 `json:"limitedBy,omitempty"` // refused requests by who refused: the activity for its users, or a subject

	Users  int64  `json:"users"`
	HeldUp int64  `json:"heldUpUsers"` // refused or delayed at least once
	Worst  []User `json:"worst"`       // the users held up most often, at most 5

	Sources []traffic.Source `json:"sources,omitempty"` // how the files were read

	OutOfOrder      int64 `json:"outOfOrder"`      // lines with a time before an earlier line's
	OutOfOrderMs    int64 `json:"outOfOrderMs"`    // the largest such difference
	OtherActivities int64 `json:"otherActivities"` // lines that were skipped

	Numbered int64 `json:"numbered,omitempty"` // requests whose caller gave a number

	BadLines int64    `json:"badLines"`                // lines that were skipped because they are no requests
	FirstBad []string `json:"firstBadLines,omitempty"` // what is wrong with the first of them

	Interrupted bool `json:"interrupted,omitempty"` // the figures cover only a part of the traffic

	ruler ruler  // of the limit with the shortest window
	first string // the user held up most often, or else the busiest one
	byID  map[string]*User
}

// A User is the result for one user.
type User struct {
	ID            string `json:"user"`
	Requests      int64  `json:"requests"`
	Allowed       int64  `json:"allowed"`
	Refused       int64  `json:"refused"`
	Delayed       int64  `json:"delayed"`
	LongestWaitMs int64  `json:"longestWaitMs"`

	first, last int64 // Unix milliseconds
	lastRun     int64 // when the last delayed request runs
	now, worst  load  // the current window, and the window with the most requests held up
}

// A load counts what a user asked for in one window.
type load struct {
	window   policy.Window
	heldUp   int64
	requests int64
}

const maxWorst = 5

func newReport(activity string, p policy.Policy, subjects []Subject) *Report {
	quota := p.Quota()
	r := &Report{
		Activity: activity, Policy: p.String(), Limit: quota.Limit, WindowMs: quota.Window.Milliseconds(),
		Exact: p.Prepaid() || slices.ContainsFunc(subjects, func(s Subject) bool { return s.Policy.Prepaid() }),
		From:  math.MaxInt64, ruler: newRuler(p), byID: make(map[string]*User),
	}
	if len(subjects) > 0 {
		r.LimitedBy = make(map[string]int64)
	}
	return r
}

// promise returns the limit of p with the shortest window, because people think
// of that limit first. For 10/1m and 200/1d, that is 10 in a minute.
func promise(p policy.Policy) policy.Rate {
	return slices.MinFunc(p.Rates(), func(a, b policy.Rate) int { return cmp.Compare(a.Window, b.Window) })
}

// A ruler divides time into the windows of a limit or, if it has none, into periods as
// long as its window.
type ruler struct {
	limit  policy.Policy
	length int64 // milliseconds
}

// newRuler returns the ruler of the limit that is the promise of p.
func newRuler(p policy.Policy) ruler {
	rate := promise(p)
	return ruler{p.Each()[slices.Index(p.Rates(), rate)], rate.Window.Milliseconds()}
}

func (r ruler) at(now int64) policy.Window {
	empty := r.limit.Read(now, 0, nil)
	if empty.ResetAt > now { // a fixed window, which can be one of a calendar
		return policy.Window{Key: empty.WindowKey, Start: empty.ResetAt - empty.Window.Milliseconds(), End: empty.ResetAt}
	}
	key := now / r.length
	return policy.Window{Key: key, Start: key * r.length, End: (key + 1) * r.length}
}

// count adds the decision about a line.
func (r *Report) count(line traffic.Line, d ratelimit.Decision) {
	u := r.byID[line.User]
	if u == nil {
		u = &User{ID: line.User, first: line.Time}
		r.byID[line.User] = u
	}
	if line.Limit != nil {
		r.Numbered++
	}
	u.count(line.Time, r.ruler.at(line.Time), d)
	if r.LimitedBy != nil && !d.Allowed {
		r.LimitedBy[d.LimitedBy]++
	}
	r.From, r.To = min(r.From, line.Time), max(r.To, line.Time)
}

// join adds the requests of other users.
func (r *Report) join(other *Report) {
	maps.Copy(r.byID, other.byID)
	r.Numbered += other.Numbered
	r.From, r.To = min(r.From, other.From), max(r.To, other.To)
}

func (u *User) count(at int64, window policy.Window, d ratelimit.Decision) {
	u.first, u.last = min(u.first, at), max(u.last, at)
	u.LongestWaitMs = max(u.LongestWaitMs, d.Wait.Milliseconds())
	if window != u.now.window {
		u.now = load{window: window}
	}
	u.Requests++
	u.now.requests++
	switch {
	case d.Allowed:
		u.Allowed++
	case d.Reason == ratelimit.Delayed:
		u.Delayed++
		u.lastRun = max(u.lastRun, d.ReadyAt)
	default:
		u.Refused++
	}
	if !d.Allowed {
		u.now.heldUp++
	}
	if cmp.Or(cmp.Compare(u.now.heldUp, u.worst.heldUp), cmp.Compare(u.now.requests, u.worst.requests)) > 0 {
		u.worst = u.now
	}
}

// heldUp returns how many requests of the user were refused or delayed.
func (u *User) heldUp() int64 { return u.Refused + u.Delayed }

// finish sums up the users, sorted by how often they were held up, and copies
// what the reader found.
func (r *Report) finish(t *traffic.Reader) {
	r.Sources = t.Sources()
	r.OutOfOrder, r.OutOfOrderMs = t.Back, t.Furthest.Milliseconds()
	r.BadLines, r.FirstBad = t.Bad, t.FirstBad
	r.Worst = []User{}
	users := slices.SortedFunc(maps.Values(r.byID), func(a, b *User) int {
		return cmp.Or(cmp.Compare(b.heldUp(), a.heldUp()), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.ID, b.ID))
	})
	for _, u := range users {
		r.Requests += u.Requests
		r.Allowed += u.Allowed
		r.Refused += u.Refused
		r.Delayed += u.Delayed
		r.LongestWaitMs = max(r.LongestWaitMs, u.LongestWaitMs)
		if u.heldUp() > 0 {
			r.HeldUp++
			if len(r.Worst) < maxWorst {
				r.Worst = append(r.Worst, *u)
			}
		}
	}
	r.Users = int64(len(users))
	if len(users) > 0 {
		r.first = users[0].ID
	} else {
		r.From = 0
	}
	r.RefusedShare = math.Round(float64(r.Refused)/float64(max(1, r.Requests))*10_000) / 10_000
}
