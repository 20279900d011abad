package simulate_test

import (
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// terms are a policy with its numbers. Reading the numbers once keeps runs cheap.
type terms struct {
	policy.Policy

	text  string
	rates []policy.Rate
	most  int64
}

func newTerms(p policy.Policy) *terms {
	t := &terms{Policy: p, text: p.String(), rates: p.Rates(), most: p.Most()}
	for i, r := range t.rates {
		if r.Burst == 0 { // the limit of every kind but the bucket
			t.rates[i].Burst = r.Limit
		}
	}
	return t
}

// longest returns the longest window, in milliseconds.
func (t *terms) longest() (window int64) {
	for _, r := range t.rates {
		window = max(window, r.Window.Milliseconds(), r.Window.Milliseconds()/r.Limit*r.Burst)
	}
	return window
}

// limit returns the number that answers show as the limit.
func limit(r policy.Rate) int64 { return r.Burst }

// An account is what the models hold of one user: one model for each limit.
type account struct {
	names  []string
	models []model
}

func newAccount(t *terms) (*account, error) {
	a := &account{}
	for _, r := range t.rates {
		m, err := newModel(r)
		if err != nil {
			return nil, err
		}
		a.names, a.models = append(a.names, r.Name), append(a.models, m)
	}
	return a, nil
}

// rate returns the rate of t that limit i goes by. The rates of a tier or a live
// limit can be in another order.
func (a *account) rate(t *terms, i int) policy.Rate {
	if r := t.rates[i]; r.Name == a.names[i] {
		return r
	}
	for _, r := range t.rates {
		if r.Name == a.names[i] {
			return r
		}
	}
	panic("the policies of one run have the same limits")
}

// at returns when an action that comes at now counts. Several limits count it at
// the same time.
func (a *account) at(now int64) int64 {
	at := now
	for _, m := range a.models {
		if later := m.at(now); later-now <= 120_000 || len(a.models) == 1 {
			at = max(at, later)
		}
	}
	return at
}

func (a *account) fits(t *terms, now, n int64, strict bool) bool {
	if n > t.most {
		return false
	}
	return a.fitsAt(t, a.moment(now), n, strict)
}

// fitsAt is fits for a time that counts.
func (a *account) fitsAt(t *terms, at, n int64, strict bool) bool {
	for i, m := range a.models {
		if !m.fits(at, n, a.rate(t, i), strict) {
			return false
		}
	}
	return true
}

// moment returns the time under which an action at now counts. A bucket alone
// counts by the clock at hand; only its receipt is later.
func (a *account) moment(now int64) int64 {
	if _, ok := a.models[0].(*bucketModel); ok && len(a.models) == 1 {
		return now
	}
	return a.at(now)
}

// count counts n actions of the moment at.
func (a *account) count(t *terms, at, n int64) {
	for i, m := range a.models {
		m.count(at, n, a.rate(t, i))
	}
}

// holds reports whether a limit still counts n actions of the moment at.
func (a *account) holds(now, at, n int64, strict bool) bool {
	for _, m := range a.models {
		if m.holds(now, at, n, strict) {
			return true
		}
	}
	return false
}

// back gives back n actions in each limit in which they still count. A log may
// have used their slots for others already, if a clock ahead says that they are
// over; then the item shows whether it gave them back.
func (a *account) back(t *terms, now, at, n int64, before, after policy.State) {
	for i, m := range a.models {
		_, keeps := m.(*logModel)
		if keeps && !m.holds(now, at, n, false) && m.counted(at, a.rate(t, i), before, after) == 0 {
			continue
		}
		if m.holds(now, at, n, true) {
			m.back(now, at, n)
		}
	}
}

// counts returns how many actions a write at now has counted, and under which
// time. All limits must count the same number. A write that was planned when a
// clock ahead had begun something counts at that clock's time, even if nothing is
// left of it when the write lands.
func (a *account) counts(t *terms, now int64, before, after policy.State) (n, at int64, err error) {
	moments := []int64{a.moment(now)}
	for i, m := range a.models {
		planned := int64(0)
		switch m := m.(type) {
		case *slidingModel:
			planned = (now/m.window + 1) * m.window
		case *bucketModel:
			planned = after[m.prefix+"asof"]
			moments = slices.DeleteFunc(moments, func(at int64) bool { return at != planned }) // the item shows it
		}
		if window := a.rate(t, i).Window.Milliseconds(); planned > now && planned-now <= min(window, 120_000) {
			moments = append(moments, planned)
		}
	}
	for _, at = range moments {
		if n, err = a.countedAt(t, at, before, after); n > 0 && err == nil {
			break
		}
	}
	return n, at, err
}

func (a *account) countedAt(t *terms, at int64, before, after policy.State) (int64, error) {
	n := int64(-1)
	for i, m := range a.models {
		got := m.counted(at, a.rate(t, i), before, after)
		if i > 0 && got != n {
			return 0, fmt.Errorf("the limit %s counts %d, and the limit %s counts %d", a.names[0], n, a.names[i], got)
		}
		n = got
	}
	return n, nil
}

func (a *account) same(s policy.State) bool {
	for _, m := range a.models {
		if !m.same(s) {
			return false
		}
	}
	return true
}

// queue returns the reservoir among the limits.
func (a *account) queue(t *terms) (*reservoirModel, policy.Rate) {
	for i, m := range a.models {
		if r, ok := m.(*reservoirModel); ok {
			return r, a.rate(t, i)
		}
	}
	return nil, policy.Rate{}
}

// A figure is what an answer may say about one limit.
type figure struct {
	name               string
	limit              int64
	used, mostUsed     int64
	resets, lastResets int64
	window             int64 // the window's number; 0: the kind has none
}

// figures returns what an answer at now may say about each limit.
func (a *account) figures(t *terms, now int64) []figure {
	at := a.moment(now)
	figures := make([]figure, len(a.models))
	for i, m := range a.models {
		r := a.rate(t, i)
		figures[i] = figure{
			name: a.names[i], limit: limit(r),
			used: m.used(at, r, false), mostUsed: m.used(at, r, true),
			resets: m.resets(at, r, false), lastResets: m.resets(at, r, true),
		}
		if len(a.models) == 1 && r.Kind != "bucket" && r.Kind != "log" {
			figures[i].window = windowsOf(r).key(m.at(at))
		}
	}
	return figures
}

// wait returns how long a caller at now has to wait until n actions fit, if
// nobody else comes.
func (a *account) wait(t *terms, now, n int64, strict bool) int64 {
	if a.fits(t, now, n, strict) {
		return 0
	}
	if m, ok := a.models[0].(*fixedModel); ok && len(a.models) == 1 {
		m.shown = m.windows.key(now) // an item shows nobody who has come in the next window already
		defer func() { m.shown = 0 }()
	}
	var refused int64 // the longest time that is known to be too short
	enough := 4*t.longest() + 400_000
	if !a.fits(t, now+enough, n, strict) {
		return -1
	}
	for enough-refused > 1 {
		if middle := (refused + enough) / 2; a.fits(t, now+middle, n, strict) {
			enough = middle
		} else {
			refused = middle
		}
	}
	return enough
}
