package explore

import "slices"

// A scenario is what callers ask for. The requests can come in any order that
// makes sense, and at the same time.
type scenario struct {
	requests []request
	prefill  int64 // actions that are counted before
}

var (
	one      = request{verb: check, count: 1}
	both     = request{verb: check, count: two}
	some     = request{verb: partial, count: two}
	again    = request{verb: repeat, of: 0}
	undo     = request{verb: release, of: 0, count: 1}
	undoBoth = request{verb: release, of: 0, count: two}
	show     = request{verb: present, of: 0}
	wipe     = request{verb: reset}
	ask0     = request{verb: status}
)

// pairs are scenarios of two requests.
var pairs = []scenario{
	{requests: []request{one, again}},
	{requests: []request{one, undo}},
	{requests: []request{some, both}},
	{requests: []request{one, wipe}},
}

// checks are the pairs that only check. A release and a reset look at the clock
// while they hold the lock of the memory, so nothing can come between there.
var checks = []scenario{
	{requests: []request{one, one}},
	{requests: []request{one, again}},
	{requests: []request{some, both}},
}

// later are scenarios with time between a check and the requests after it.
var later = []scenario{
	{requests: []request{one, both}},
	{requests: []request{one, again}},
	{requests: []request{one, undo, one}},
}

// newest is a release of what may be the newest of two actions.
var newest = []scenario{
	{requests: []request{one, one, undo}},
}

// most is a check for more than is free, because a part of the period before
// still counts. Before that, the next period was begun on a clock that is ahead,
// and what it counted was given back.
var most = []scenario{
	{requests: []request{one, undo, {verb: check, count: 105}}},
}

// longPartial is a partial request with so many attempts that one of them can
// land after others were answered.
var longPartial = []scenario{
	{requests: []request{{verb: check, count: 1, tries: 1}, {verb: release, of: 0, count: 1, tries: 2}, {verb: partial, count: two, tries: 5}}},
}

// longest is a partial request of three that gets fewer places in each attempt,
// until a reset lets its first attempt land.
var longest = []scenario{
	{requests: []request{{verb: check, count: 1, tries: 1}, {verb: reset, tries: 1}, {verb: partial, count: 3, tries: 5}}},
}

// outages are what an instance can be asked in an outage.
var outages = []scenario{
	{requests: []request{some, one, one}},
	{requests: []request{one, one, again}},
	{requests: []request{both, undoBoth, one}},
}

// twice is a release whose late copy arrives after the check is counted again.
var twice = []scenario{
	{requests: []request{{verb: check, count: 1, tries: 1}, {verb: release, of: 0, count: 1, tries: 3}, {verb: repeat, of: 0, tries: 1}}},
}

// renewals are scenarios of a log with one free slot or none, so that a slot that is
// lost lets one too many through. A release or a renewal has the newest receipt or an
// older one.
var (
	hold      = request{verb: renew, of: 0, count: 1}
	holdAgain = request{verb: renew, of: 1, count: 1}
	undoHeld  = request{verb: release, of: 1, count: 1}

	renewals = []scenario{
		{[]request{one, hold, one}, 1},
		{[]request{one, hold, hold}, 1},
		{[]request{one, hold, holdAgain}, 0},
		{[]request{one, hold, undo}, 0},
		{[]request{one, hold, undoHeld}, 0},
		{[]request{one, hold, again}, 1},
		{[]request{both, {verb: renew, of: 0, count: two}, one}, 0},
		{[]request{one, hold, wipe}, 0},
	}
)

// locking are scenarios of a lockout. The third action is refused until the lock ends, or
// until something is given back or cleared.
var (
	wash     = request{verb: unlock, of: 0, count: 1}
	washBoth = request{verb: unlock, of: 0, count: two}
	locking  = []scenario{
		{[]request{one, one, one}, 0},
		{[]request{both, one, one}, 0},
		{[]request{one, one, one}, two}, // a lock that ends, and the next one, which is longer
		{[]request{one, wash, one}, 1},
		{[]request{one, wash, wash}, 1},
		{[]request{both, washBoth, one}, 0},
		{[]request{one, undo, one}, 1},
		{[]request{one, wash, again}, 1},
	}
	bothWays = []scenario{{[]request{one, undo, wash, again}, 0}} // the app releases it with clear and without
)

// mixed are scenarios of a group. Every other request is of the activity whose actions
// cost more.
var mixed = []scenario{
	{[]request{one, one, one}, 0},
	{[]request{one, one, {verb: release, of: 1, count: 1}}, 0},
	{[]request{one, one, {verb: repeat, of: 1}}, 0},
	{[]request{one, some, one}, 0},
}

// mixedHeld are scenarios of such a group that renews what costs more.
var mixedHeld = []scenario{{[]request{one, one, {verb: renew, of: 1, count: 1}}, 0}}

// rooms are scenarios of two users in a room that has place for one or two.
var (
	rooms = []scenario{
		{[]request{one, one, one}, 0},
		{[]request{one, one, again}, 1},
		{[]request{one, again, undo}, 0},
		{[]request{one, one, undo}, 1},
		{[]request{both, one, again}, 0},
		{[]request{one, undo, again}, 1},
	}
	heldInRooms = []scenario{
		{[]request{one, hold, one}, 1},
		{[]request{one, hold, hold}, 0},
		{[]request{one, hold, undoHeld}, 0},
	}
)

// mixedInRooms are scenarios of a group in a room that has place for less than two of the
// dearer actions. The first two requests have one id, and are of one user.
var mixedInRooms = []scenario{
	{[]request{one, one, one}, 2},
	{[]request{one, one, {verb: release, of: 1, count: 1}}, 2},
	{[]request{one, one, {verb: repeat, of: 1}}, 1},
	{[]request{one, one, undo}, 2},
}

// mixedPairs are two requests. The second one is of the other tier or activity.
var mixedPairs = []scenario{{[]request{one, one}, 1}}

// held15 are scenarios of receipts and slots that are held.
var held15 = []scenario{
	{[]request{one, undo, undo}, 0},
	{[]request{one, undo, again}, 1},
	{[]request{one, again, one}, 1},
	{[]request{one, hold, undoHeld}, 0},
	{[]request{one, hold, one}, 1},
}

// hotInRooms are scenarios of a prepaid limit of a user or a room.
var hotInRooms = []scenario{
	{requests: []request{one, one, one}},
	{requests: []request{one, one, {verb: release, of: 1, count: 1}}},
	{requests: []request{one, again, one}},
}

// hot are scenarios of a prepaid limit.
var hot = []scenario{
	{requests: []request{one, one, one}},
	{requests: []request{one, one, both}},
	{requests: []request{one, one, some}},
	{requests: []request{one, again, one}},
	{requests: []request{one, undo, one}},
	{[]request{one, one, one}, 1},
	{[]request{both, some, one}, 1},
}

// hotter is a scenario with two leases or more.
var hotter = []scenario{{requests: []request{one, one, one, one}}}

// core are the scenarios with the widest bounds.
var core = []scenario{
	{requests: []request{one, one, one}},
	{requests: []request{one, again, one}},
	{requests: []request{both, again, one}},
	{requests: []request{one, undo, again}},
	{requests: []request{one, undo, undo}},
	{requests: []request{some, one, one}},
	{requests: []request{one, undo, some}},
	{requests: []request{some, undoBoth, some}},
	{requests: []request{one, wipe, again}},
	{requests: []request{one, undo, wipe}},
}

// rest are the other scenarios.
var rest = []scenario{
	{requests: []request{both, one, one}},
	{requests: []request{both, undo, one}},
	{requests: []request{both, undoBoth, some}},
	{requests: []request{some, both, one}},
	{requests: []request{some, some, one}},
	{requests: []request{one, again, again}},
	{requests: []request{one, undo, one}},
	{requests: []request{one, wipe, one}},
	{requests: []request{some, wipe, one}},
	{requests: []request{one, one, ask0}},
}

// places and places2 are the scenarios of a policy that gives places, of three
// requests and of two.
var (
	places = []scenario{
		{[]request{one, one, one}, 0},
		{[]request{one, one, one}, 1},
		{[]request{one, again, one}, 1},
		{[]request{one, again, one}, two},
		{[]request{one, show, one}, two},
		{[]request{one, show, show}, two},
	}
	places2 = []scenario{
		{[]request{one, one}, 1},
		{[]request{one, again}, two},
		{[]request{one, show}, two},
		{[]request{one, one}, 5},  // the next place is the last one of the second window from now
		{[]request{one, show}, 6}, // only a clock that is ahead gives a place, in the window after that
	}
)

// asksForMore reports whether a request asks for more than the lowered limit.
func (c scenario) asksForMore() bool {
	return slices.ContainsFunc(c.requests, func(r request) bool { return r.verb == check && r.count > 1 })
}
