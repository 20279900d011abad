// Package policy decides how often a user may act. It is pure: no function here
// reads a clock, draws a random number or talks to a database.
//
// A [Policy] is written as text and read with [Parse]:
//
//	10/1m                          at most 10 in each minute of the clock
//	bucket 10/1m burst 15          15 at once, then one every 6 s
//	log 100/12h                    at most 100 in any 12 hours
//	sliding 50/1h                  about 50 in any hour, from two counters
//	reservoir 10/10s ahead 15m     10 in 10 s; the next ones get a later time
//	lockout 5/15m for 1h           5 attempts in 15 minutes; the fifth locks for an hour
//	minute: 10/1m, day: 200/1d     both limits must allow the action
//	100000/1d cost 200             one action takes 200 of the limit
//	100/1h max 10000               100, or the number that the caller gives, up to 10000
//	6000/1m prepaid                a busy process takes many actions with one update
//	1000/month in Europe/Berlin    from midnight to midnight of a time zone; also day and week
//
// The state of a policy is a few integers in one item of a database.
// [Policy.Take] reads a [State] and plans an [Update]. An update consists of changes
// and a guard: a condition that must still hold when the changes are applied. The
// database does both in one atomic step. If the guard fails, it returns the item as
// it is, and the caller plans again from it. So a request needs no read before its
// update, and no lock.
//
// For example, the limit is 10/1m and 9 actions are counted. Take plans "add 1 to
// activityCount" with the guard "activityCount <= 9". If two callers send this update
// at the same time, it holds for one. The other calls Take again with 10: refused.
//
// [Policy.Read] returns the figures of a state, such as how many actions remain,
// and [Policy.Undo] plans to give actions back. All times are Unix milliseconds
// unless a name says otherwise.
package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Policy is one limit, or several that must all allow an action. A Policy
// never changes, so it is safe for concurrent use. The zero Policy has no limit. Check
// for it with [Policy.IsZero] before calling a method that needs one, such as Take.
type Policy struct {
	limits  []limit // a single limit has no name, unless it is one of a group; several limits have names
	max     int64   // the lowest limit, because a request has to pass all of them; 1 if there is a queue
	highest int64   // the lowest limit, each with the highest number that a caller can give
	queue   *limit  // the limit that is a reservoir, which gives places in later windows; nil: no limit is
	log     *limit  // the limit that is a log; nil: no limit is

	beside []kind           // the limits of a group that are in the same item, see [Policy.Beside]
	costs  map[string]int64 // the lowest cost of each of these limits, by its name
}

// A Reading is what callers are told about a state. Its figures are in actions.
type Reading struct {
	Name      string        // the limit that these figures are about, if the policy has several; else empty
	Limit     int64         // actions per window; for a bucket its burst
	Window    time.Duration // the time that Limit actions take to come back
	Used      int64         // actions counted in the current window
	Remaining int64         // actions left now; never below 0
	ResetAt   int64         // when everything that counts now has expired. If nothing counts: now; for a fixed window, its end
	WindowKey int64         // floor(now / window), or the next one if a clock that is ahead has begun it; 0 for a bucket, a log or several limits
	Wait      time.Duration // how long until the actions asked about fit, if nobody else acts; 0: they fit now
	Locked    bool          // a lockout allows nothing until ResetAt
	Crossed   int64         // 80 or 100 if these actions reached that share of Limit, see [Policy.Cross]; else 0
	Each      []Reading     // one for each limit, if the policy has several
}

// IsZero reports whether p is the zero Policy, which has no limit.
func (p Policy) IsZero() bool { return len(p.limits) == 0 }

// Equal reports whether p and q have the same text form.
func (p Policy) Equal(q Policy) bool { return p.String() == q.String() }

// Max returns the most actions that one request can take.
func (p Policy) Max() int64 { return p.max }

// Quota returns the figures if nothing is counted. Their Limit and Window are q and w of
// the RateLimit-Policy header: 15 and 90 s for bucket 10/1m burst 15.
func (p Policy) Quota() Reading { return p.Read(0, 0, nil) }

// Item returns which item counts at now, and until when that item matters.
// Window is floor(now / window) if each window has an item of its own, and 0 if
// one item serves forever. Expires is in Unix seconds. From then on, deleting
// the item changes no decision, even on a clock that is 120 s behind. For example,
// 10/1m at second 1,700,000,030 counts in window 28,333,333. That ends 10 s later, so
// expires is 1,700,000,160.
func (p Policy) Item(now int64) (window, expires int64) {
	for _, l := range p.limits {
		w, e := l.kind.item(now, nil) // w is 0 if limits have names
		window, expires = max(window, w), max(expires, e)
	}
	for _, k := range p.beside {
		_, e := k.item(now, nil)
		expires = max(expires, e)
	}
	return window, expires
}

// Beside returns p as a policy whose items also hold the limits of others in its group.
// Then an item matters as long as any of them counts in it. A limit is used up if even
// the cheapest action that counts in a limit of its name does not fit.
func (p Policy) Beside(others ...Policy) Policy {
	p.beside, p.costs = nil, map[string]int64{}
	for _, o := range others {
		for _, l := range o.limits {
			if !slices.Contains(p.beside, l.kind) {
				p.beside = append(p.beside, l.kind)
			}
			p.costs[l.rate.Name] = min(l.rate.cost(), cmp.Or(p.costs[l.rate.Name], l.rate.cost()))
		}
	}
	return p
}

// Take plans to count n actions at now in an item with state s. It returns
// false if s has no room for them, or if n is not between 1 and [Policy.Max].
// The guard of the update is as weak as the policy allows, so concurrent requests
// that all fit do not make each other fail. Seed spreads them over the free slots
// of a log: any value is correct, but different seeds collide less often.
func (p Policy) Take(now, n int64, seed uint64, s State) (Update, bool) {
	if n < 1 || n > p.max {
		return Update{}, false
	}
	if !p.Named() {
		u, ok := p.limits[0].take(now, n, seed, s)
		if at := p.limits[0].kind.counted(now, s); at > now {
			u.CountedAt = at
		}
		return u, ok
	}
	parts := p.parts(s)
	at := p.latest(now, parts)
	var whole Update
	for i, l := range p.limits {
		u, ok := l.take(p.own(i, now, at), n, seed, parts[i])
		if !ok {
			return Update{}, false
		}
		whole.add(l, u, parts[i])
	}
	if at > now {
		whole.CountedAt = at
	}
	return whole, true
}

// Undo plans to give back n actions. At is their receipt, which is when the check came
// that took them, or when they were last renewed. CountedAt is when they count in limits
// other than a log: [Update.CountedAt], or the time of the check. Undo returns false if the
// actions do not count any more, or if s counts fewer than n. Of several limits, it leaves
// out each that has no such actions. The item must hold the id of the check: without it, plan
// [Policy.Free].
func (p Policy) Undo(now, at, countedAt, n int64, s State) (Update, bool) {
	if n < 1 || n > million || at > now {
		return Update{}, false
	}
	now = max(now, countedAt)
	if !p.Named() {
		return p.limits[0].undo(now, p.own(0, at, countedAt), n, s)
	}
	var whole Update
	for i, l := range p.limits {
		mine := l.mine(s)
		if u, ok := l.undo(now, p.own(i, at, countedAt), n, mine); ok {
			whole.add(l, u, mine)
		}
	}
	return whole, len(whole.Acts) > 0
}

// Free plans what Undo does for a log alone, and leaves other limits as they are. A log
// remembers when each of its actions was counted, so their time is receipt enough when
// their id is forgotten.
func (p Policy) Free(now, at, n int64, s State) (Update, bool) {
	return p.slots(now, at, n, s, Act{Verb: Delete})
}

// Renew plans to move n actions of a log from at, their receipt, to now. It leaves
// other limits as they are. Renew returns false if the actions do not count any more.
func (p Policy) Renew(now, at, n int64, s State) (Update, bool) {
	return p.slots(now, at, n, s, Act{Verb: Set, Value: now - slotEpoch})
}

// slots plans act for each slot of n actions of a log.
func (p Policy) slots(now, at, n int64, s State, act Act) (whole Update, ok bool) {
	if p.log == nil || n < 1 || n > million/p.log.rate.cost() || at > now {
		return Update{}, false
	}
	mine := p.log.mine(s)
	u, ok := p.log.kind.(log).change(now, at, n*p.log.rate.cost(), mine, act)
	if ok {
		whole.add(*p.log, u, mine)
	}
	return whole, ok
}

// HasLog reports whether one of p's limits is a log, whose actions can be renewed.
func (p Policy) HasLog() bool { return p.log != nil }

// HeldUntil returns until when actions of a log with the receipt at count: at plus
// the log's window. It is 0 if p has no log, and then nothing can be renewed.
func (p Policy) HeldUntil(at int64) int64 {
	if p.log == nil {
		return 0
	}
	return at + p.log.rate.Window.Milliseconds()
}

// Read returns the figures of s at now. Wait is how long until n more actions
// fit; for n = 0 it is 0. With several limits, the figures belong to the limit
// that restricts the caller most (see [Reading.Binds]).
func (p Policy) Read(now, n int64, s State) Reading {
	if !p.Named() {
		return p.limits[0].read(now, n, s).plausible(now)
	}
	each := make([]Reading, len(p.limits))
	parts := p.parts(s)
	binding, at := 0, p.latest(now, parts)
	for i, l := range p.limits {
		from := p.own(i, now, at)
		if each[i] = l.read(from, n, parts[i]); each[i].Wait > 0 {
			each[i].Wait += millis(from - now)
		}
		each[i] = each[i].plausible(now)
		each[i].Name, each[i].WindowKey = l.rate.Name, 0
		if each[i].Binds(each[binding]) {
			binding = i
		}
	}
	r := each[binding]
	r.Each = each
	return r
}

// plausible returns r with each figure limited to its range. Only a state that no
// policy has written has others.
func (r Reading) plausible(now int64) Reading {
	const longest = 2 * maxWindow // no policy counts an action for longer
	r.Used = max(0, r.Used)
	r.Remaining = min(max(0, r.Remaining), r.Limit)
	if r.Wait < 0 || r.Wait > longest {
		r.Wait = longest
	}
	r.ResetAt = min(max(now, r.ResetAt), now+longest.Milliseconds())
	return r
}

// Binds reports whether r restricts the caller more than other does. The longer
// Wait decides, then the smaller Remaining, then the later ResetAt.
func (r Reading) Binds(other Reading) bool {
	return cmp.Or(
		cmp.Compare(r.Wait, other.Wait),
		cmp.Compare(other.Remaining, r.Remaining),
		cmp.Compare(r.ResetAt, other.ResetAt),
	) > 0
}

// Queues reports whether the policy gives places in later windows before it
// refuses. Only a reservoir does.
func (p Policy) Queues() bool { return p.queue != nil }

// CountedAt returns when an action that comes at now counts in the item with state s. That
// is now, or a later time that another clock has already written, at most 120 s ahead. All
// limits but a log count an action at the same time, so that one note beside its id serves
// them all. For example, a clock that is 2 s ahead takes from a full bucket at 12:00:02. If
// another clock counts at 12:00:01, the bucket and the windows beside it count at 12:00:02.
// A log's slot gets 12:00:01: its time is the receipt when the id is forgotten.
func (p Policy) CountedAt(now int64, s State) int64 { return p.latest(now, p.parts(s)) }

// latest returns what CountedAt does, of the parts of a state. By a later time, limits beside
// each other can count still later: a sliding-window counter with short periods looks at one
// at a time. A limit alone has looked at all of them.
func (p Policy) latest(now int64, parts []State) int64 {
	latest := now
	for i, l := range p.limits {
		latest = max(latest, l.kind.counted(now, parts[i]))
	}
	if latest == now || !p.Named() {
		return latest
	}
	return p.latest(latest, parts)
}

// own returns the time that limit i counts by. For a log, it is clock, the time of the
// clock that asks. For each other limit, it is all, the time when all of these count.
func (p Policy) own(i int, clock, all int64) int64 {
	if p.log == &p.limits[i] {
		return clock
	}
	return all
}

// add merges one limit's update into u, the update of the whole item. Limit l
// planned part in its state mine. Of the conjunctions of its guard, only the first one
// that holds becomes part of the whole guard, which so is one short conjunction.
//
// For example, minute: 10/1m, day: 200/1d has counted 4 actions in this minute
// and 60 on this day. The guard for one more is "minute_s counts 1 to 9 of this
// minute AND day_s counts 1 to 199 of this day", and the update adds 1 to both.
func (u *Update) add(l limit, part Update, mine State) {
	terms := part.Also
	if i := slices.IndexFunc(part.If, func(terms []Term) bool { return all(terms, mine) }); i >= 0 {
		terms = append(slices.Clip(part.If[i]), terms...)
	}
	for _, t := range terms {
		t.Attr = l.attr(t.Attr)
		u.Also = append(u.Also, t)
	}
	for _, a := range part.Acts {
		a.Attr = l.attr(a.Attr)
		u.Acts = append(u.Acts, a)
	}
	u.ReadyAt = max(u.ReadyAt, part.ReadyAt)
}

// attr returns the name that an attribute of one limit has in the item, such as
// minute_s. A limit without a name is alone in the item.
func (l limit) attr(name string) string {
	if l.rate.Name == "" {
		return name
	}
	return l.rate.Name + "_" + name
}

// parts returns the part of s of each limit.
func (p Policy) parts(s State) []State {
	parts := make([]State, len(p.limits))
	for i, l := range p.limits {
		parts[i] = l.mine(s)
	}
	return parts
}

// mine returns the part of s that belongs to l, without its name in the attributes.
func (l limit) mine(s State) State {
	if l.rate.Name == "" {
		return s
	}
	prefix := l.attr("")
	from, _ := s.index(prefix)
	to := from
	for to < len(s) && strings.HasPrefix(s[to].Name, prefix) {
		to++
	}
	mine := slices.Clone(s[from:to])
	for i := range mine {
		mine[i].Name = mine[i].Name[len(prefix):]
	}
	return mine
}
