package replay

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A Report is what a limit would have done.
type Report struct {
	Activity string `json:"activity"`
	Policy   string `json:"policy"` // in words
	Limit    int64  `json:"limit"`
	WindowMs int64  `json:"windowMs"`

	From int64 `json:"from"` // Unix milliseconds: the first request
	To   int64 `json:"to"`   // and the last

	Requests      int64   `json:"requests"`
	Allowed       int64   `json:"allowed"`
	Refused       int64   `json:"refused"`
	Delayed       int64   `json:"delayed"`      // given a place for later
	RefusedShare  float64 `json:"refusedShare"` // of the requests, 0 to 1
	LongestWaitMs int64   `json:"longestWaitMs"`

	Users  int64  `json:"users"`
	HeldUp int64  `json:"heldUpUsers"` // refused or delayed at least once
	Worst  []User `json:"worst"`       // the most held up, at most mostWorst

	OutOfOrder      int64 `json:"outOfOrder"`      // lines whose time is before an earlier line's
	OutOfOrderMs    int64 `json:"outOfOrderMs"`    // by at most so much
	OtherActivities int64 `json:"otherActivities"` // lines left out

	window int64  // milliseconds: what the policy is taken to promise for
	first  string // user: the most held up, or the busiest
	byID   map[string]*User
}

// A User is what it would have done to one user.
type User struct {
	ID            string `json:"user"`
	Requests      int64  `json:"requests"`
	Allowed       int64  `json:"allowed"`
	Refused       int64  `json:"refused"`
	Delayed       int64  `json:"delayed"`
	LongestWaitMs int64  `json:"longestWaitMs"`

	first, last int64 // Unix milliseconds
	lastRun     int64 // of a delayed request
	now, worst  load  // this window, and that with the most held up
}

// A load is what a user asked for in one window.
type load struct {
	window   int64 // its number
	heldUp   int64
	requests int64
}

const mostWorst = 5

func newReport(r *Replay) *Report {
	_, window := promise(r.Policy)
	report := &Report{
		Activity: r.Activity, Policy: r.Policy.String(), From: math.MaxInt64,
		window: window.Milliseconds(), byID: make(map[string]*User),
	}
	limit, per := r.Policy.Quota()
	report.Limit, report.WindowMs = limit, per.Milliseconds()
	return report
}

// count adds a decision.
func (r *Report) count(line Line, d ratelimit.Decision) {
	u := r.byID[line.User]
	if u == nil {
		u = &User{ID: line.User, first: line.Time}
		r.byID[line.User] = u
	}
	u.count(line.Time, line.Time/r.window, d)
	r.From, r.To = min(r.From, line.Time), max(r.To, line.Time)
}

func (u *User) count(at, window int64, d ratelimit.Decision) {
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
		u.now.heldUp++
		u.lastRun = max(u.lastRun, d.ReadyAt)
	default:
		u.Refused++
		u.now.heldUp++
	}
	if cmp.Or(cmp.Compare(u.now.heldUp, u.worst.heldUp), cmp.Compare(u.now.requests, u.worst.requests)) > 0 {
		u.worst = u.now
	}
}

func (u *User) heldUp() int64 { return u.Refused + u.Delayed }

// finish sums up.
func (r *Report) finish() {
	r.Worst = []User{}
	for _, u := range r.byID {
		r.Requests += u.Requests
		r.Allowed += u.Allowed
		r.Refused += u.Refused
		r.Delayed += u.Delayed
		r.LongestWaitMs = max(r.LongestWaitMs, u.LongestWaitMs)
		r.Users++
		if u.heldUp() > 0 {
			r.HeldUp++
		}
		r.Worst = append(r.Worst, *u)
		if len(r.Worst) > 100*mostWorst {
			r.keepWorst()
		}
	}
	r.keepWorst()
	if len(r.Worst) > 0 {
		r.first = r.Worst[0].ID
	}
	r.Worst = slices.DeleteFunc(r.Worst, func(u User) bool { return u.heldUp() == 0 })
	r.RefusedShare = math.Round(float64(r.Refused)/float64(max(1, r.Requests))*10_000) / 10_000
}

// keepWorst orders the worst and cuts them off.
func (r *Report) keepWorst() {
	slices.SortFunc(r.Worst, func(a, b User) int {
		return cmp.Or(cmp.Compare(b.heldUp(), a.heldUp()), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.ID, b.ID))
	})
	r.Worst = r.Worst[:min(len(r.Worst), mostWorst)]
}

// user finds one by id; empty: the most held up or, where nobody was, the
// busiest.
func (r *Report) user(id string) (*User, bool) {
	if id == "" {
		id = r.first
	}
	u, ok := r.byID[id]
	return u, ok
}

// some are the names in order.
func some(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }
