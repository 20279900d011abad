package ratelimit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// SlidingLog allows Limit actions in any time of Window: each action counts for
// exactly so long, and its place comes back when it has ceased to.
//
// Worst case: none; it is exact at every moment. It pays with memory: a slot for
// each action.
//
// Its state is Limit slots, named a0 to j9, each the time of its last use in
// milliseconds since 2020: with a user id of 36 characters 100 of them take 974
// bytes, so the item fits one write unit. A request takes any slots that are
// free, at random, so that writers rarely meet in one. Its guard sees these slots
// alone: a request of a higher limit at the same moment may take one beyond a
// lower limit's, so that for once both are admitted.
type SlidingLog struct {
	Limit  int64         // actions in any Window; 1 to 100
	Window time.Duration // a positive whole number of milliseconds
}

const (
	mostSlots = 100
	slotEpoch = 1_577_836_800_000 // 2020 in Unix milliseconds: saves a byte in each slot

	// looseSlots is how many slots a guard may test for being free in any way,
	// which takes four operators each. More are tested for the one way in which
	// they were seen free, which takes two.
	looseSlots = 60
)

// slotNames are the names of all slots.
var slotNames = func() (names [mostSlots]string) {
	for i := range names {
		names[i] = string([]byte{byte('a' + i/10), byte('0' + i%10)})
	}
	return names
}()

// Validate implements [Policy].
func (p SlidingLog) Validate() error {
	if p.Limit > mostSlots {
		return fmt.Errorf("limit is %d, want at most %d: each action takes a slot of the item", p.Limit, mostSlots)
	}
	return validWindow(p.Limit, p.Window)
}

// String is the policy in words: 100 in 12 hours, sliding log.
func (p SlidingLog) String() string {
	return fmt.Sprintf("%d %s, sliding log", p.Limit, per(p.Window))
}

// Quota implements [Policy].
func (p SlidingLog) Quota() (int64, time.Duration) { return p.Limit, p.Window }

// Place implements [Policy].
func (p SlidingLog) Place(now int64) Place {
	return Place{Expires: expiry(now+p.Window.Milliseconds(), clockSlack)}
}

// Plan implements [Policy].
func (p SlidingLog) Plan(now, n int64) Plan {
	free := p.free(now)
	return func(s State) (Update, bool) {
		if n+int64(len(p.counting(now, s))) > p.Limit {
			return Update{}, false
		}
		u := Update{If: [][]Term{make([]Term, 0, n)}, Acts: make([]Act, 0, n)}
		for _, i := range rand.Perm(int(p.Limit)) {
			if int64(len(u.Acts)) == n {
				break
			}
			if at, used := s[slotNames[i]]; at <= free {
				u.If[0] = append(u.If[0], slotIsFree(slotNames[i], free, used, n <= looseSlots))
				u.Acts = append(u.Acts, Act{Set, slotNames[i], now - slotEpoch})
			}
		}
		return u, int64(len(u.Acts)) == n // fewer only by a clock before 2020
	}
}

func slotIsFree(name string, free int64, used, loose bool) Term {
	switch {
	case loose:
		return AtMost(name, free)
	case used:
		return Within(name, math.MinInt64, free)
	}
	return Missing(name)
}

// Release implements [Policy]. The slots whose time is at are the receipt; one
// that has ceased to count is given back without anyone's noticing.
func (p SlidingLog) Release(_, at, n int64) (Plan, bool) {
	used := at - slotEpoch
	return func(s State) (Update, bool) {
		u := Update{If: make([][]Term, 1)}
		for name, t := range s {
			if isSlot(name) && t == used && int64(len(u.Acts)) < n {
				u.If[0] = append(u.If[0], Within(name, used, used))
				u.Acts = append(u.Acts, Act{Verb: Delete, Attr: name})
			}
		}
		return u, int64(len(u.Acts)) == n
	}, false
}

// Figures implements [Policy]. ResetAt is the newest entry's expiry.
func (p SlidingLog) Figures(now int64, s State) Figures {
	f := Figures{Remaining: p.Limit, ResetAt: now}
	if times := p.counting(now, s); len(times) > 0 {
		f.Used = int64(len(times))
		f.Remaining = max(0, p.Limit-f.Used)
		f.ResetAt = slices.Max(times) + slotEpoch + p.Window.Milliseconds()
	}
	return f
}

// Wait implements [Policy].
func (p SlidingLog) Wait(now, n int64, s State) time.Duration {
	times := p.counting(now, s)
	over := int64(len(times)) + n - p.Limit // how many have to cease
	if over < 1 {
		return 0
	}
	if over > int64(len(times)) { // never, as n is above the limit
		over = int64(len(times))
	}
	slices.Sort(times)
	return millis(times[over-1] - p.free(now))
}

// free is the latest time of a slot that does not count at now.
func (p SlidingLog) free(now int64) int64 { return now - slotEpoch - p.Window.Milliseconds() }

// counting are the times of the slots that count at now, in any order.
func (p SlidingLog) counting(now int64, s State) (times []int64) {
	for name, at := range s {
		if isSlot(name) && at > p.free(now) {
			times = append(times, at)
		}
	}
	return times
}

func isSlot(name string) bool {
	return len(name) == 2 && 'a' <= name[0] && name[0] <= 'j' && '0' <= name[1] && name[1] <= '9'
}
