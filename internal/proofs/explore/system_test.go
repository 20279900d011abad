package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// edge is the end of a window and of a generation of ids, in Unix milliseconds.
// All listed instants are relative to it.
const edge = 1_700_000_400_000

// slots is the most requests of a system.
const slots = 4

// A system is what the explorer explores: two instances, up to three requests,
// and the moments when something can happen.
type system struct {
	kinds    string        // of the limits, for the table of figures
	policies []*rules      // the limit in force, and the live limits that replace it, in order
	dear     []*rules      // for the other requests, which are of another tier, or of an activity of the group whose actions cost more; empty: the same
	room     []*rules      // for a room that users act in; empty: one user acts alone
	dearRoom []*rules      // for the room and the other requests; empty: the same
	numbered policy.Policy // for which callers give numbers: then it is one of policies or dear; zero: they give none
	inRoom   policy.Policy // likewise for the room
	hold     bool          // receipts and ids are held
	prefill  int64         // actions that are counted at the first instant, in the room if there is one and the users are not prepaid
	skew     time.Duration // how far instance B's clock is ahead
	instants []int64       // in ms after the edge, in ascending order
	requests []request
	attempts int  // of one decision
	faults   int  // in a whole run; 0: any number
	shared   bool // an instance serves several requests at once
	slow     bool // an answer can be on its way while other things happen
	fine     bool // a decision can be interrupted at each look at the clock, too
	cleanup  bool // cleanup can run at any time
	crash    bool // an instance can die at any request
	fails    bool // each request for the room fails, and all others are answered
	versions bool // dear is another version of policies, whose limits count apart
}

// rules are a policy with its rates at hand, because policy.Policy makes a new list for each look.
type rules struct {
	policy.Policy

	rates []policy.Rate
}

func rulesOf(text string) *rules {
	p := policy.Must(text)
	return &rules{p, p.Rates()}
}

// Rates returns the numbers of each limit, which must not change.
func (r *rules) Rates() []policy.Rate { return r.rates }

// A verb is what a request asks for.
type verb string

const (
	check   verb = "check"
	partial verb = "partial"
	repeat  verb = "repeat"  // the caller sends request Of again
	release verb = "release" // gives back request Of
	unlock  verb = "clear"   // gives back request Of, and ends the series of each lockout
	renew   verb = "renew"   // renews the slots of request Of
	present verb = "present" // comes with the place that request Of got
	reset   verb = "reset"
	status  verb = "status"
)

// A request is one call of a limiter. Its id is its number in the system.
type request struct {
	verb  verb
	count int64
	of    int // repeat, release, clear, renew and present: the number of the request
	tries int // the most attempts; 0: as the system has
}

// String writes r as a text, such as "release 1 of r0 in 3".
func (r request) String() string {
	text := string(r.verb)
	switch r.verb {
	case check, partial:
		text += fmt.Sprint(" ", r.count)
	case release, unlock, renew:
		text += fmt.Sprintf(" %d of %s", r.count, name(r.of))
	case repeat, present:
		text += " of " + name(r.of)
	case reset, status:
	}
	if r.tries > 0 {
		text += fmt.Sprint(" in ", r.tries)
	}
	return text
}

// name returns how texts call a request: r0, r1, r2.
func name(slot int) string { return fmt.Sprint("r", slot) }

// tries returns the most attempts of the request in slot s. A release or a renewal has
// one more, because it reads first.
func (y *system) tries(s int) int {
	switch r := y.requests[s]; {
	case r.tries != 0:
		return r.tries
	case r.verb == release || r.verb == unlock || r.verb == renew:
		return y.attempts + 1
	}
	return y.attempts
}

// first returns the slot whose id the request in slot s has.
func (y *system) first(s int) int {
	for y.requests[s].refers() {
		s = y.requests[s].of
	}
	return s
}

// refers reports whether r is about another request.
func (r request) refers() bool {
	return r.verb == repeat || r.verb == release || r.verb == unlock || r.verb == renew || r.verb == present
}

// isOther reports whether the request in slot s is of the other tier or activity. A prepaid
// limit has one such request, because the key of the others must become hot.
func (y *system) isOther(s int) bool {
	return s != old && y.first(s)%2 == 1 && (y.first(s) == 1 || !y.lends())
}

// terms returns the policy for the request in slot s that an instance follows, and the
// room's policy, which is nil without a room. Limit is the number of the live limit.
func (y *system) terms(s int, limit uint8) (user, inRoom *rules) {
	user, inRoom = follow(y.policies, limit), follow(y.room, limit)
	if y.isOther(s) && len(y.dear) > 0 {
		user = follow(y.dear, limit)
	}
	if y.isOther(s) && len(y.dearRoom) > 0 {
		inRoom = follow(y.dearRoom, limit)
	}
	return user, inRoom
}

// follow returns the live limit with a number, or the last one; nil: there is none.
func follow(list []*rules, limit uint8) *rules {
	if len(list) == 0 {
		return nil
	}
	return list[min(int(limit), len(list)-1)]
}

// unitsOf returns how much of each limit n actions with the policy p take.
func unitsOf(p *rules, n int64) (units [maxLimits]int64) {
	for i, r := range p.Rates() {
		units[i] = n * max(1, r.Cost)
	}
	return units
}

// call returns the request in slot s as the caller sends it. Of is what
// the request that it refers to was told.
func (y *system) call(s int, limit uint8, of kept) ratelimit.Request {
	mine, inRoom := y.terms(s, limit)
	p := given(y.numbered, mine.Policy)
	r := ratelimit.Request{UserID: users[0], Activity: "act", Policy: p, Count: 1, ID: name(y.first(s)), Hold: y.hold, Fallback: true}
	if y.policies[0].Named() { // the other requests are of another activity of a group
		r.Group, r.Activity = "act", "activity0"
		if y.isOther(s) {
			r.Activity = "activity1"
		}
	}
	switch mine := y.requests[s]; mine.verb {
	case check:
		r.Count = mine.count
	case partial: // a partial request has no id of the caller's
		r.Count, r.Partial, r.Fresh = mine.count, true, true
	case repeat:
		r.Count = y.requests[y.first(s)].count
	case release, unlock, renew:
		r.At, r.Count, r.Clear = of.at, min(mine.count, of.granted), mine.verb == unlock
	case present:
		r.ReadyAt = of.readyAt
	case reset, status:
		r.ID = string(mine.verb)
	}
	r.Count = min(r.Count, max(p.Max(), 1))
	if inRoom != nil {
		r.Count = min(r.Count, inRoom.Max())
	}
	if r.Partial {
		r.Count = y.requests[s].count
	}
	return r
}

// time returns the time of instance i at an instant, in Unix milliseconds.
func (y *system) time(instant uint8, i int) int64 {
	return edge + y.instants[instant] + int64(i)*y.skew.Milliseconds()
}

// keys returns the keys of all items that can come into being.
func (y *system) keys() (all []ratelimit.Key) {
	add := func(user string, p *rules) {
		for t := range y.instants {
			for i := range 2 {
				k := ratelimit.Key{UserID: user, Activity: "act"}
				if k.Window, _ = p.Item(y.time(uint8(t), i)); !slices.Contains(all, k) {
					all = append(all, k)
				}
			}
		}
	}
	for _, p := range slices.Concat(y.policies, y.dear) {
		add(users[0], p)
	}
	if len(y.room) > 0 {
		add(users[1], y.policies[0])
		add(room, y.room[0])
	}
	return all
}

// String writes the system: its limits, the requests from r0 on, and the bounds.
func (y *system) String() string {
	var b strings.Builder
	for _, limits := range []struct {
		of   string
		list []*rules
	}{{"users", y.policies}, {"the other tier or activity", y.dear}, {"the room", y.room}, {"the room and that other one", y.dearRoom}} {
		if len(limits.list) > 0 {
			fmt.Fprintf(&b, "limits of %s: %v; ", limits.of, limits.list)
		}
	}
	fmt.Fprintf(&b, "requests:")
	for s, r := range y.requests {
		fmt.Fprintf(&b, " %s %s,", name(s), r)
	}
	fmt.Fprintf(&b, " counted before: %d; clocks %v apart; instants: %v; attempts: %d; faults: %d", y.prefill, y.skew, y.instants, y.attempts, y.faults)
	for i, set := range []bool{y.hold, y.shared, y.slow, y.fine, y.cleanup, y.crash, y.fails, y.versions} {
		if set {
			b.WriteString("; " + []string{"hold", "shared", "slow", "fine", "cleanup", "crash", "fails", "versions"}[i])
		}
	}
	return b.String()
}
