package simulate_test

import (
	"fmt"
	"iter"
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
		switch {
		case r.Burst == 0: // the limit of every kind but the bucket
			t.rates[i].Burst = r.Limit
		case r.Prepaid: // it keeps back what refills in a second, or in a quarter of the time in which it fills
			every := interval(r)
			t.rates[i].Burst -= (min(1000, r.Burst*every/4) + every - 1) / every
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

// cost returns how many units one action takes. The models count in units.
func cost(r policy.Rate) int64 { return max(1, r.Cost) }

// An account is what the models hold of one user: one model for each limit. In a
// group it has those of all activities.
type account struct {
	names  []string
	models []model
}

// ordinary returns the limits of all activities, for callers without a tier.
func (s *sim) ordinary() (list []*terms) {
	for _, a := range s.activities {
		list = append(list, s.of(a.Limit))
	}
	return list
}

func newAccount(limits []*terms) *account {
	a := &account{}
	for _, t := range limits {
		for _, r := range t.rates {
			if slices.Contains(a.names, r.Name) {
				continue
			}
			m, err := newModel(r)
			if err != nil {
				panic(err) // TestAKindWithoutAModelIsAnError
			}
			a.names, a.models = append(a.names, r.Name), append(a.models, m)
		}
	}
	return a
}

// named reports whether the limits have names, and one item for all times.
func (a *account) named() bool { return a.names[0] != "" }

// own returns each model that t has a limit for, with that limit. The limits of a tier
// or a live limit can be in another order.
func (a *account) own(t *terms) iter.Seq2[model, policy.Rate] {
	return func(yield func(model, policy.Rate) bool) {
		for i, m := range a.models {
			if r, ok := t.rate(a.names[i]); ok && !yield(m, r) {
				return
			}
		}
	}
}

// rate returns the limit with this name.
func (t *terms) rate(name string) (policy.Rate, bool) {
	i := slices.IndexFunc(t.rates, func(r policy.Rate) bool { return r.Name == name })
	if i < 0 {
		return policy.Rate{}, false
	}
	return t.rates[i], true
}

// at returns when an action that comes at now counts. Several limits count it at
// the same time.
func (a *account) at(t *terms, now int64) int64 {
	at := now
	for m := range a.own(t) {
		if later := m.at(now); later-now <= 120_000 || !a.named() {
			at = max(at, later)
		}
	}
	return at
}

func (a *account) fits(t *terms, now, n int64, strict bool) bool {
	if n > t.most {
		return false
	}
	return a.fitsAt(t, a.moment(t, now), n, strict)
}

// fitsAt is fits for a time that counts.
func (a *account) fitsAt(t *terms, at, n int64, strict bool) bool {
	for m, r := range a.own(t) {
		if !m.fits(at, n*cost(r), r, strict) {
			return false
		}
	}
	return true
}

// moment returns the time under which an action at now counts. A bucket alone
// counts by the clock at hand; only its receipt is later.
func (a *account) moment(t *terms, now int64) int64 {
	if _, ok := a.models[0].(*bucketModel); ok && !a.named() {
		return now
	}
	return a.at(t, now)
}

// count counts n actions of the moment at.
func (a *account) count(t *terms, at, n int64) {
	for m, r := range a.own(t) {
		m.count(at, n*cost(r), r)
	}
}

// holds reports whether a limit still counts n actions of the moment at.
func (a *account) holds(t *terms, now, at, n int64, strict bool) bool {
	for m, r := range a.own(t) {
		if m.holds(now, at, n*cost(r), strict) {
			return true
		}
	}
	return false
}

// back gives back n actions in each limit in which they still count. A log may
// have used their slots for others already, if a clock ahead says that they are
// over; then the item shows whether it gave them back.
func (a *account) back(t *terms, now, at, n int64, before, after policy.State) {
	for m, r := range a.own(t) {
		_, keeps := m.(*logModel)
		if keeps && !m.holds(now, at, n*cost(r), false) && m.counted(at, r, before, after) == 0 {
			continue
		}
		if m.holds(now, at, n*cost(r), true) {
			m.back(now, at, n*cost(r))
		}
	}
}

// counts returns how many actions a write at now has counted, and under which
// time. All limits must count the same number. A write that was planned when a
// clock ahead had begun something counts at that clock's time, even if nothing is
// left of it when the write lands.
func (a *account) counts(t *terms, now int64, before, after policy.State) (n, at int64, err error) {
	moments := []int64{a.moment(t, now)}
	for m, r := range a.own(t) {
		planned := int64(0)
		switch m := m.(type) {
		case *slidingModel:
			planned = (now/m.window + 1) * m.window
		case *bucketModel:
			planned = after[m.prefix+"asof"]
			moments = slices.DeleteFunc(moments, func(at int64) bool { return at != planned }) // the item shows it
		}
		if window := r.Window.Milliseconds(); planned > now && planned-now <= min(window, 120_000) {
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
	n, first := int64(-1), ""
	for m, r := range a.own(t) {
		units := m.counted(at, r, before, after)
		got := units / cost(r)
		switch {
		case units%cost(r) != 0:
			return 0, fmt.Errorf("the limit %s counts %d, and an action costs %d", r.Name, units, cost(r))
		case n >= 0 && got != n:
			return 0, fmt.Errorf("the limit %s counts %d, and the limit %s counts %d", first, n, r.Name, got)
		}
		n, first = got, r.Name
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
	for m, r := range a.own(t) {
		if q, ok := m.(*reservoirModel); ok {
			return q, r
		}
	}
	return nil, policy.Rate{}
}

// A figure is what an answer may say about one limit, in actions.
type figure struct {
	name               string
	limit              int64
	used, mostUsed     int64
	left, mostLeft     int64
	resets, lastResets int64
	window             int64 // the window's number; 0: the kind has none
}

// figures returns what an answer at now may say about each limit.
func (a *account) figures(t *terms, now int64) []figure {
	at := a.moment(t, now)
	figures := make([]figure, 0, len(t.rates))
	for m, r := range a.own(t) {
		used, mostUsed, c := m.used(at, r, false), m.used(at, r, true), cost(r)
		f := figure{
			name: r.Name, limit: r.Burst / c,
			used: (used + c - 1) / c, mostUsed: (mostUsed + c - 1) / c,
			left: max(0, r.Burst-mostUsed) / c, mostLeft: max(0, r.Burst-used) / c,
			resets: m.resets(at, r, false), lastResets: m.resets(at, r, true),
		}
		if !a.named() && r.Kind != "bucket" && r.Kind != "log" {
			f.window = windowsOf(r).key(m.at(at))
		}
		figures = append(figures, f)
	}
	return figures
}

// wait returns how long a caller at now has to wait until n actions fit, if
// nobody else comes.
func (a *account) wait(t *terms, now, n int64, strict bool) int64 {
	if a.fits(t, now, n, strict) {
		return 0
	}
	if m, ok := a.models[0].(*fixedModel); ok && !a.named() {
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
