package policy

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// log allows limit actions in any period of the length window. Each action counts
// for exactly one window. A log is exact at every moment, but it takes space:
// one slot for each action.
//
// Its state has two parts. The slots a0 to j9, numbered 0 to 99, each hold the
// time of their last use, in milliseconds since 2020. A slot is free if it is
// absent, or if its time is at least one window ago. The attribute top is an
// upper bound: every used slot has a number below top.
//
// A request takes free slots below its limit. Its guard tests only these slots
// and top. That is enough: if n slots below the limit are free, and no slot at
// or above the limit is used, then at most limit-n slots are used. For example, with
// log 3/1h and slot 0 used, a request picks slot 2. Its guard is "slot 2 is free AND
// top <= 3". So a concurrent request for slot 1 does not make it fail.
//
// If the limit was lowered, or another tier has a higher one, slots between the limit
// and top can be used too. So the guard needs top-limit more free slots. For example,
// 60 pins are counted under a limit of 100, and the limit becomes 50. One more pin
// needs 1 + 50 free slots of the 100. Only 40 are free, so the pin is refused.
type log struct {
	limit  int64
	window int64 // milliseconds
}

const (
	maxSlots = 100
	top      = "top"

	absent = math.MinInt64 // the time of a slot that is not in the item, before each other time

	// slotEpoch is 2020 in Unix milliseconds, which saves a byte in each slot.
	slotEpoch = 1_577_836_800_000

	// looseSlots is how many slots a guard can test for "absent or old", which takes
	// four operators each. With more slots it tests for "absent" or for "old",
	// whichever is true in the known state, which takes two. So a log takes about
	// 200 of DynamoDB's 300 operators and leaves the rest for other limits.
	looseSlots = 50
)

var slotNames = func() (names [maxSlots]string) {
	for i := range names {
		names[i] = string([]byte{'a' + byte(i/10), '0' + byte(i%10)})
	}
	return names
}()

func makeLog(r Rate, _ bool) (kind, error) {
	if r.Limit > maxSlots {
		return nil, fmt.Errorf("limit is %d, want at most %d, because each action takes a slot of the item; did you mean \"sliding %d/%s\"?",
			r.Limit, maxSlots, r.Limit, span(r.Window))
	}
	return log{r.Limit, r.Window.Milliseconds()}, nil
}

func (p log) with(r Rate) kind {
	p.limit = r.Limit
	return p
}

func (p log) item(now int64, _ State) (window, expires int64) {
	return 0, expiry(now+p.window, ClockSlack)
}

func (p log) stays() (least, most int64) {
	return p.window + ClockSlack.Milliseconds(), p.window + ClockSlack.Milliseconds()
}

// take uses n free slots below the limit, and tests as many more as top is above it. Top falls
// by one for each highest slot that it tests and leaves free, but never below the limit. For
// example, with top 60, limit 50 and the spare slots 59, 58 and 40, the new top is 58.
func (p log) take(now, n int64, seed uint64, s State) (Update, bool) {
	slots := max(p.limit, p.top(s))
	times := slotTimes(s)
	free := p.free(now, times[:slots])
	need := int(n + slots - p.limit) // free slots that the guard must test
	if len(free) < need {
		return Update{}, false
	}
	p.choose(free, int(n), need, seed)
	terms := make([]Term, 0, need+1)
	acts := make([]Act, 0, n+1)
	after := slots // the new top
	for i, slot := range free[:need] {
		terms = append(terms, p.isFree(now, slot, times[slot], need <= looseSlots))
		switch {
		case int64(i) < n:
			acts = append(acts, Act{Set, slotNames[slot], now - slotEpoch})
		case slot == after-1 && after > p.limit:
			after--
		}
	}
	return Update{
		If:   [][]Term{append(terms, AtMost(top, slots))},
		Acts: append(acts, Act{Set, top, after}),
	}, true
}

// choose reorders free, which must be in ascending order. It puts n slots below
// the limit first, which it picks by seed, and then the highest, so that top can fall.
func (p log) choose(free []int64, n, need int, seed uint64) {
	below, _ := slices.BinarySearch(free, p.limit)
	var random rand.PCG
	random.Seed(seed, uint64(n))
	draw := rand.New(&random)
	for i := range n {
		j := i + draw.IntN(below-i)
		free[i], free[j] = free[j], free[i]
	}
	if need > n {
		slices.SortFunc(free[n:], func(a, b int64) int { return cmp.Compare(b, a) })
	}
}

// isFree returns a term that tests whether a slot is free, which has this time and must
// be free. A loose term accepts both an absent slot and an old one.
func (p log) isFree(now, slot, time int64, loose bool) Term {
	if time == absent && !loose {
		return Missing(slotNames[slot])
	}
	return Term{slotNames[slot], math.MinInt64, p.oldest(now), loose}
}

// undo deletes n slots whose time is at. The slots of one millisecond are alike.
func (p log) undo(now, at, n int64, s State) (Update, bool) {
	return p.change(now, at, n, s, Act{Verb: Delete})
}

func (p log) counted(now int64, _ State) int64 { return now }

// change plans act for n slots whose time is at. A slot at or above top is not set: a
// clock ahead saw it as free, and nobody counts it any more.
func (p log) change(now, at, n int64, s State, act Act) (Update, bool) {
	used, slots := at-slotEpoch, int64(maxSlots)
	u := Update{If: make([][]Term, 1)}
	if act.Verb == Set {
		slots = p.top(s)
		u.If[0] = append(u.If[0], Within(top, slots, math.MaxInt64))
	}
	times := slotTimes(s)
	for i, t := range times[:slots] {
		if t == used && int64(len(u.Acts)) < n && at > now-p.window {
			act.Attr = slotNames[i]
			u.If[0] = append(u.If[0], Exactly(act.Attr, used))
			u.Acts = append(u.Acts, act)
		}
	}
	return u, int64(len(u.Acts)) == n
}

func (p log) read(now, n int64, s State) Reading {
	all := slotTimes(s)
	times := all[:0] // of the slots that count
	for _, t := range all[:max(p.limit, p.top(s))] {
		if t > p.oldest(now) {
			times = append(times, t)
		}
	}
	r := Reading{
		Limit: p.limit, Window: millis(p.window),
		Used: int64(len(times)), Remaining: max(0, p.limit-int64(len(times))), ResetAt: now,
	}
	if r.Used == 0 {
		return r
	}
	slices.Sort(times)
	r.ResetAt = times[len(times)-1] + slotEpoch + p.window
	if over := r.Used + n - p.limit; n > 0 && over > 0 { // how many have to expire first
		r.Wait = millis(times[min(over, r.Used)-1] - p.oldest(now))
	}
	return r
}

// free returns the numbers of the free slots among those with these times, in ascending order.
func (p log) free(now int64, times []int64) []int64 {
	free := make([]int64, 0, len(times))
	for slot, t := range times {
		if t <= p.oldest(now) {
			free = append(free, int64(slot))
		}
	}
	return free
}

// slotTimes returns the time of each slot of s, which is absent if s does not have the slot.
func slotTimes(s State) (times [maxSlots]int64) {
	for i := range times {
		times[i] = absent
	}
	for _, a := range s {
		if n, ok := slotOf(a.Name); ok {
			times[n] = max(a.Value, absent+1)
		}
	}
	return times
}

// slotOf returns the number of the slot with this name; false: there is none.
func slotOf(name string) (int, bool) {
	if len(name) != 2 || name[0] < 'a' || name[0] > 'j' || name[1] < '0' || name[1] > '9' {
		return 0, false
	}
	return int(name[0]-'a')*10 + int(name[1]-'0'), true
}

// top returns the top of s, limited to the number of slots.
func (p log) top(s State) int64 { return min(max(0, s.Get(top)), maxSlots) }

// oldest returns the latest time that does not count any more at now, in
// milliseconds since 2020.
func (p log) oldest(now int64) int64 { return now - slotEpoch - p.window }
