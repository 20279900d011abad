package histories_test

import (
	"maps"
	"slices"
	"sort"

	"github.com/cric-talk/guards/internal/policy"
)

// An account is what one limit has counted, as plain facts. Nobody may change
// its maps and slices.
type account struct {
	counts map[int64]int64 // fixed, sliding, reservoir: actions by the number of their window
	times  []int64         // log: when each action was counted, in ascending order
	full   int64           // bucket: when it will be full again
	since  int64           // bucket: when it was last full
}

// A promise is what the contract says about one limit. It shares no code with
// the policies.
type promise interface {
	// take counts n actions, or returns false if they do not fit. Place is when
	// they may run; 0: at once. Latest is the latest time that was ever counted.
	take(a account, now, latest, n int64) (after account, place int64, ok bool)

	// undo gives back n actions of the receipt at, or returns false if they do
	// not count any more.
	undo(a account, now, at, n int64) (account, bool)

	used(a account, now int64) int64
	resetAt(a account, now int64) int64
	most() int64
	windowKey(now int64) int64
}

// promises has the promise of each kind of limit. Shared: the item also holds
// other limits.
var promises = map[string]func(r policy.Rate, shared bool) promise{
	"fixed":     func(r policy.Rate, shared bool) promise { return fixed{clock(r), shared} },
	"log":       func(r policy.Rate, _ bool) promise { return log{clock(r)} },
	"sliding":   func(r policy.Rate, _ bool) promise { return sliding{clock(r)} },
	"bucket":    func(r policy.Rate, _ bool) promise { return bucket{r.Window.Milliseconds() / r.Limit, r.Burst} },
	"reservoir": func(r policy.Rate, _ bool) promise { return reservoir{clock(r), r.Ahead.Milliseconds()} },
}

// windows are windows of the clock, and a limit for each of them.
type windows struct{ limit, window int64 }

func clock(r policy.Rate) windows { return windows{r.Limit, r.Window.Milliseconds()} }

func (w windows) key(now int64) int64       { return now / w.window }
func (w windows) end(key int64) int64       { return (key + 1) * w.window }
func (w windows) most() int64               { return w.limit }
func (w windows) windowKey(now int64) int64 { return w.key(now) }

// count adds n to the actions of a window.
func (a account) count(key, n int64) account {
	counts := maps.Clone(a.counts)
	if counts == nil {
		counts = map[int64]int64{}
	}
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
	a.counts = counts
	return a
}

// last returns the latest window with actions, or -1.
func (a account) last() int64 {
	last := int64(-1)
	for key := range a.counts {
		last = max(last, key)
	}
	return last
}

type fixed struct {
	windows
	shared bool
}

func (p fixed) take(a account, now, _, n int64) (account, int64, bool) {
	key := p.key(now)
	if p.shared && a.last() > key { // another clock has begun the next window
		return a, 0, false
	}
	return a.count(key, n), 0, a.counts[key]+n <= p.limit
}

func (p fixed) undo(a account, now, at, n int64) (account, bool) {
	key := p.key(at)
	return a.count(key, -n), key == p.key(now) && a.counts[key] >= n
}

func (p fixed) used(a account, now int64) int64    { return a.counts[p.key(now)] }
func (p fixed) resetAt(_ account, now int64) int64 { return p.end(p.key(now)) }

type log struct{ windows }

func (p log) windowKey(int64) int64 { return 0 }

// counting returns how many actions have not expired.
func (p log) counting(a account, now int64) (n int64) {
	for _, at := range a.times {
		if at > now-p.window {
			n++
		}
	}
	return n
}

// take takes its time from the latest clock: what has expired there may be
// overwritten.
func (p log) take(a account, now, latest, n int64) (account, int64, bool) {
	if p.counting(a, max(now, latest))+n > p.limit {
		return a, 0, false
	}
	times := slices.Clone(a.times)
	for range n {
		times = append(times, now)
	}
	slices.Sort(times)
	a.times = times
	return a, 0, true
}

func (p log) undo(a account, now, at, n int64) (account, bool) {
	left := slices.Clone(a.times)
	for range n {
		i := slices.Index(left, at)
		if i < 0 || at <= now-p.window {
			return a, false
		}
		left = slices.Delete(left, i, i+1)
	}
	a.times = left
	return a, true
}

func (p log) used(a account, now int64) int64 { return p.counting(a, now) }

func (p log) resetAt(a account, now int64) int64 {
	if p.counting(a, now) == 0 {
		return now
	}
	return a.times[len(a.times)-1] + p.window
}

type sliding struct{ windows }

// used counts this period, and of the previous one the part that the sliding
// window still covers.
func (p sliding) used(a account, now int64) int64 {
	key := p.key(now)
	return a.counts[key] + a.counts[key-1]*(p.window-now%p.window)/p.window
}

func (p sliding) take(a account, now, _, n int64) (account, int64, bool) {
	key := p.key(now)
	return a.count(key, n), 0, p.used(a, now)+n <= p.limit && a.last() <= key
}

func (p sliding) undo(a account, now, at, n int64) (account, bool) {
	key := p.key(at)
	return a.count(key, -n), key >= p.key(now)-1 && a.counts[key] >= n
}

func (p sliding) resetAt(a account, now int64) int64 {
	for key := p.key(now); key >= p.key(now)-1; key-- {
		if a.counts[key] > 0 {
			return p.end(key + 1)
		}
	}
	return now
}

// bucket has room for burst actions. One comes back every interval.
type bucket struct{ interval, burst int64 }

func (p bucket) most() int64           { return p.burst }
func (p bucket) windowKey(int64) int64 { return 0 }

func (p bucket) take(a account, now, _, n int64) (account, int64, bool) {
	if a.full <= now {
		a.full, a.since = now, now
	}
	a.full += n * p.interval
	return a, 0, a.full <= now+p.burst*p.interval
}

func (p bucket) undo(a account, _, at, n int64) (account, bool) {
	before := a.since
	a.full -= n * p.interval
	return a, before <= at && a.full >= before
}

func (p bucket) used(a account, now int64) int64 {
	return (max(0, a.full-now) + p.interval - 1) / p.interval
}

func (p bucket) resetAt(a account, now int64) int64 { return max(now, a.full) }

// wait returns the shortest time after which n actions fit, if nobody else acts.
func wait(p promise, a account, now, latest, n int64) int64 {
	fits := func(after int) bool {
		_, _, ok := p.take(a, now+int64(after), latest, n)
		return ok
	}
	horizon := 1
	for !fits(horizon) && horizon < 1<<40 {
		horizon *= 2
	}
	return int64(sort.Search(horizon, fits))
}
