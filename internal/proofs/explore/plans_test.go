package explore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
)

// A plan is a part of the exploration with bounds of its own.
type plan struct {
	name      string
	subjects  []subject
	scenarios []scenario
	places    []scenario // of a policy that gives places
	instants  []int64
	skews     []time.Duration
	attempts  int
	faults    int           // in a run; 0: any number
	live      bool          // the limit is lowered and then raised
	set       func(*system) // the other bounds
	list      []*system     // the systems themselves, instead of subjects and scenarios
}

// wrongOnce returns systems that had a wrong run once, or that show an exception that the
// contract does not state.
func wrongOnce() (all []*system) {
	add := func(limits string, y system, requests ...request) {
		for text := range strings.SplitSeq(limits, " then ") {
			y.policies = append(y.policies, rulesOf(text))
		}
		y.kinds, y.requests = y.policies[0].Rates()[0].Kind, requests
		all = append(all, &y)
	}
	// A clock that is ahead counts in the next period what an instance behind it would refuse.
	add("sliding 2/10s", system{skew: 2 * time.Second, instants: border[:1], attempts: 1, faults: 1}, both, again, one)
	// A lowered limit refuses the repeat of what a higher limit counted.
	add("2/10s then 1/10s", system{instants: whole, attempts: 1, faults: 1}, one, again, one)
	// A late attempt is counted after its request was told limited.
	add("2/10s", system{instants: whole, attempts: 2, faults: 1}, both, undoBoth, one)
	// The receipt of a bucket beside a reservoir comes from a clock that is ahead.
	add("a: bucket 2/10s, b: reservoir 2/20s ahead 20s", system{instants: late, attempts: 2, faults: 1}, one, one, one)
	// Late copies of a check and of its release arrive after a reset, which has deleted both ids.
	add("2/10s", system{skew: 2 * time.Second, instants: border[:1], attempts: 2, faults: 2}, one, undo, wipe)
	// A late copy of a check arrives after a reset and between a release and its answer.
	add("2/10s", system{instants: whole, attempts: 2, faults: 1, slow: true}, one, undo, wipe)
	return all
}

// The instants when something can happen, in ms after the end of a window, of a
// period and of a generation of ids.
var (
	border   = []int64{-1, 0}
	whole    = []int64{0} // with all of a window to come
	borders  = []int64{-2000, -1, 0}
	window   = []int64{-1, 0, 9998, 9999, 10_000}              // until an action has expired
	seconds  = []int64{0, 1001, 5000}                          // as long as a memory refuses, and a breaker is open
	ids      = []int64{-1, 17_998, 20_999, 21_000, 28_001}     // as long as ids are kept
	held     = []int64{-1, 8000, 9999, 18_001}                 // until renewed slots have expired
	twice20  = []int64{0, 15_000, 29_500}                      // a renewal, and one that needs the id that it kept
	minutes  = []int64{0, 29_000, 890_000}                     // as long as receipts are held
	late     = []int64{-1, 3000, 4999}                         // as long as an attempt can be late
	cycle    = []int64{-1, 258_999}                            // until a generation of ids has the same set again
	locked   = []int64{-1, 0, 1999, 5998}                      // until a lock ends, and almost until the next one ends, which is longer
	expiry   = []int64{-1, 120_999, 121_000, 121_001}          // of a window's item
	expiries = []int64{-1, 130_999, 141_001, 151_001, 281_001} // of other items
)

var (
	same  = []time.Duration{0}
	apart = []time.Duration{2 * time.Second}
	skews = []time.Duration{0, 2 * time.Second}
)

// plans returns the bounds of the exploration.
func plans(t *testing.T) []plan {
	t.Helper()
	single, large, several := subjects(t)
	all := slices.Concat(single, large, several)
	shared := func(y *system) { y.shared = true }
	fine := func(y *system) { y.shared, y.fine = true, true }
	slow := func(y *system) { y.slow = true }
	cleanup := func(y *system) { y.cleanup = true }
	crash := func(y *system) { y.crash = true }
	fails := func(y *system) { y.fails = true }
	versions := func(y *system) { y.versions = true }
	three := []subject{{kinds: single[0].kinds, text: []string{text(policy.Kinds()[0], 3, 10)}, prefill: 1}}
	if !prove.Long() {
		return []plan{
			{name: "wrong once", list: wrongOnce()},
			{name: "three requests", subjects: single, scenarios: core, places: places, instants: border[:1], skews: apart, attempts: 2, faults: 1},
			{name: "high limits", subjects: large, scenarios: pairs[:2], instants: border[:1], skews: apart, attempts: 2, faults: 1},
			{name: "several limits", subjects: several, scenarios: pairs, places: places2, instants: border[:1], skews: apart, attempts: 2, faults: 1},
			{name: "two faults", subjects: single, scenarios: pairs, places: places2, instants: border, skews: apart, attempts: 2, faults: 2},
			{name: "a late copy", subjects: single, scenarios: pairs[:2], places: places2[:2], instants: late, skews: apart, attempts: 2, faults: 1},
			{name: "a late release", subjects: single, scenarios: twice, instants: border[:1], skews: same, attempts: 1},
			{name: "a long partial request", subjects: single[:1], scenarios: longPartial, instants: border[:1], skews: same, attempts: 1, faults: 2},
			{name: "a long partial request of three", subjects: three, scenarios: longest, instants: border[:1], skews: same, faults: 2},
			{name: "an outage", subjects: single, scenarios: outages[:1], places: places[:1], instants: []int64{0, 5000}, skews: same, attempts: 1, faults: 2},
			{name: "seconds later", subjects: single[:1], scenarios: outages[2:], instants: []int64{0, 5000}, skews: same, attempts: 1, faults: 1},
			{name: "a live limit", subjects: single, scenarios: checks[:1], places: places2[:1], instants: border[:1], skews: same, attempts: 2, faults: 1, live: true},
			{name: "cleanup", subjects: single, scenarios: checks[:2], places: places2[:2], instants: expiries, skews: apart, attempts: 2, faults: 1, set: cleanup},
			{name: "cleanup within a window", subjects: single, scenarios: later, places: places2[2:], instants: []int64{-1, 9998, 11_000}, skews: same, attempts: 2, faults: 1, set: cleanup},
			{name: "at once on an instance", subjects: single[:1], scenarios: checks, instants: border, skews: same, attempts: 1, set: fine},
			{name: "until a release has expired", subjects: single, scenarios: newest, instants: []int64{-1, 1000, 9999}, skews: same, attempts: 1, faults: 1},
			{name: "the end of a period, high limits", subjects: large, scenarios: most, instants: []int64{-1, 8000}, skews: apart, attempts: 1},
			{name: "generations of ids later", subjects: single, scenarios: pairs[:2], places: places2[1:2], instants: ids[:3], skews: apart, attempts: 2, faults: 1},
			{name: "a cycle of generations later", subjects: single, scenarios: pairs[:1], instants: cycle, skews: same, attempts: 1},
			{name: "several limits, seconds later", subjects: several, scenarios: newest, instants: []int64{0, 6998}, skews: same, attempts: 2, faults: 1},
			{name: "a long outage", subjects: lasting(), scenarios: outages[:1], instants: []int64{0, 10_001}, skews: same, attempts: 1, faults: 2},
			{name: "renewals", subjects: logs(single), scenarios: renewals, instants: held, skews: apart, attempts: 2, faults: 1},
			{name: "renewals beside another limit", subjects: logs(several), scenarios: renewals, instants: held[:2], skews: apart, attempts: 1, faults: 1},
			{name: "a late copy of a renewal", subjects: logs(single), scenarios: renewals[1:4], instants: late, skews: apart, attempts: 2, faults: 1},
			{name: "renewals after the id", subjects: logs(lasting()), scenarios: renewals[1:5], instants: twice20, skews: apart, attempts: 1, faults: 1},
			{name: "a group with mixed costs", subjects: costly(), scenarios: mixed, instants: border[:1], skews: apart, attempts: 2, faults: 1},
			{name: "two versions side by side", subjects: sideBySide(), scenarios: mixed[:3], instants: []int64{-1, 0}, skews: same, attempts: 1, faults: 1, set: versions},
			{name: "renewals in a group with mixed costs", subjects: logs(costly()), scenarios: mixedHeld, instants: held[:2], skews: apart, attempts: 1, faults: 1},
			{name: "rooms", subjects: inRooms(), scenarios: rooms[:3], instants: border[:1], skews: apart, attempts: 2, faults: 1, set: crash},
			{name: "a room that fails alone", subjects: inRooms()[:4], scenarios: rooms[:2], instants: []int64{0, 5000}, skews: same, attempts: 2, set: fails},
			{name: "two attempts in a full room", subjects: inRooms()[1:2], scenarios: inAFullRoom, instants: border[:1], skews: same, attempts: 2, faults: 1},
			{name: "two attempts in a full prepaid room", subjects: prepaidInRooms()[:2], scenarios: prepaidInAFullRoom, instants: border[:1], skews: same, attempts: 2, faults: 1},
			{name: "two attempts until a place comes back", subjects: fillingRooms(), scenarios: untilAPlaceComesBack[:1], instants: []int64{0, 5000}, skews: same, attempts: 2, faults: 1},
			{name: "three attempts until a place comes back", subjects: fillingRooms()[:1], scenarios: untilAPlaceComesBack[1:2], instants: []int64{0, 5000}, skews: same, attempts: 1, faults: 1},
			{name: "slots in rooms", subjects: slotsInRooms(), scenarios: heldInRooms, instants: held[:2], skews: apart, attempts: 1, faults: 1, set: crash},
			{name: "midnight", subjects: days(), scenarios: core[:4], instants: []int64{midnight - 1, midnight}, skews: apart, attempts: 1, faults: 1},
			{name: "groups in rooms", subjects: groupsInRooms(), scenarios: mixedInRooms, instants: border[:1], skews: apart, attempts: 1, faults: 1, set: crash},
			{name: "live limits of groups in rooms", subjects: groupsInRooms(), scenarios: mixedPairs, instants: border[:1], skews: same, attempts: 1, faults: 1, live: true},
			{name: "held in rooms", subjects: slotless(heldInARoom()), scenarios: held15[:3], instants: minutes, skews: same, attempts: 1, faults: 1},
			{name: "slots held in rooms", subjects: logs(heldInARoom()), scenarios: held15[3:4], instants: minutes, skews: same, attempts: 1, faults: 1},
			{name: "quotas", subjects: quotas(), scenarios: mixed, instants: []int64{midnight - 1, midnight}, skews: apart, attempts: 1, faults: 1},
			{name: "live quotas", subjects: quotas(), scenarios: mixedPairs, instants: []int64{midnight - 1, midnight}, skews: same, attempts: 1, faults: 1, live: true},
			{name: "prepaid limits in rooms", subjects: prepaidInRooms(), scenarios: hotInRooms, instants: whole, skews: apart, attempts: 1, faults: 1, set: crash},
			{name: "prepaid groups", subjects: prepaidGroups(), scenarios: hotter, instants: whole, skews: same, attempts: 1, faults: 1},
			{name: "prepaid limits", subjects: prepaids(), scenarios: hot, instants: whole, skews: apart, attempts: 2, faults: 1, set: crash},
			{name: "prepaid limits, the end of a window", subjects: prepaids(), scenarios: hot[:2], instants: []int64{-1100, 0}, skews: apart, attempts: 1, faults: 1, set: crash},
			{name: "prepaid limits, seconds later", subjects: prepaids(), scenarios: hot[:1], instants: []int64{0, 999, 1001}, skews: same, attempts: 1, faults: 1},
			{name: "prepaid limits, four requests", subjects: prepaids(), scenarios: hotter, instants: whole, skews: same, attempts: 1, faults: 1},
			{name: "prepaid limits, at once on an instance", subjects: prepaids(), scenarios: hot[:2], instants: whole, skews: same, attempts: 1, faults: 1, set: shared},
			{name: "a live prepaid limit", subjects: prepaids(), scenarios: hot[:1], instants: whole, skews: same, attempts: 1, faults: 1, live: true},
			{name: "a live limit above 100", subjects: crossing(), scenarios: checks[1:2], instants: border[:1], skews: same, attempts: 2, faults: 1, live: true},
			{name: "numbers", subjects: numbers(), scenarios: mixed[:3], instants: border[:1], skews: apart, attempts: 2, faults: 1},
			{name: "numbers that change", subjects: numbers(), scenarios: checks[:2], instants: border[:1], skews: same, attempts: 2, faults: 1, live: true},
			{name: "numbers below and above 100", subjects: numbersAcross(), scenarios: checks[1:2], instants: border[:1], skews: same, attempts: 2, faults: 1, live: true},
			{name: "numbers in rooms", subjects: numbersInRooms(), scenarios: mixedPairs, instants: border[:1], skews: same, attempts: 1, faults: 1, live: true},
			{name: "slots with numbers", subjects: logs(numbers()), scenarios: mixedHeld, instants: held[:2], skews: same, attempts: 1, faults: 1},
			{name: "locks", subjects: locks(single), scenarios: locking[3:], instants: locked[1:3], skews: apart, attempts: 2, faults: 1},
			{name: "two locks", subjects: locks(single), scenarios: locking[:3], instants: locked, skews: same, attempts: 1, faults: 1},
			{name: "locks beside another limit", subjects: locks(several), scenarios: locking[3:5], instants: locked[1:3], skews: same, attempts: 1, faults: 1},
			{name: "locks, at once on an instance", subjects: locks(single), scenarios: checks[:2], instants: locked[1:3], skews: same, attempts: 1, set: fine},
			{name: "live lockouts", subjects: liveLocks(), scenarios: locking[:2], instants: locked[1:3], skews: apart, attempts: 1, faults: 1, live: true},
			{name: "locks, released and cleared", subjects: locks(single), scenarios: bothWays, instants: locked[1:2], skews: same, attempts: 2, faults: 1},
			{name: "locks in rooms", subjects: locksInRooms()[1:3], scenarios: locking[3:5], instants: locked[1:2], skews: same, attempts: 1, faults: 1},
		}
	}
	others := slices.Concat(large, several)
	everywhere := []plan{
		{name: "a late copy", scenarios: core, places: places, instants: late, skews: apart, attempts: 2, faults: 2},
		{name: "cleanup of windows", scenarios: core, places: places, instants: expiry, skews: skews, attempts: 3, faults: 1, set: cleanup},
		{name: "cleanup of other items", scenarios: core, places: places, instants: expiries, skews: skews, attempts: 3, faults: 1, set: cleanup},
		{name: "both borders", scenarios: core, places: places, instants: borders, skews: apart, attempts: 3, faults: 1},
		{name: "generations of ids later", scenarios: core, places: places, instants: ids, skews: skews, attempts: 3, faults: 1, set: cleanup},
		{name: "a window later", scenarios: core, places: places, instants: window, skews: skews, attempts: 3, faults: 1, set: cleanup},
	}
	var list []plan
	for _, p := range everywhere {
		p.subjects = single
		list = append(list, p)
	}
	for _, p := range everywhere { // with fewer attempts and requests
		p.name += ", other limits"
		p.subjects, p.scenarios, p.places, p.skews, p.attempts, p.faults = others, pairs, places2, apart, 2, 1
		list = append(list, p)
	}
	return append(list,
		plan{name: "wrong once", list: wrongOnce()},
		plan{name: "a late copy of one of three, other limits", subjects: others, scenarios: core, places: places, instants: late, skews: apart, attempts: 2, faults: 1},
		plan{name: "a late release", subjects: all, scenarios: twice, instants: border, skews: skews, attempts: 1},
		plan{name: "a long partial request", subjects: all, scenarios: longPartial, instants: border[:1], skews: skews, attempts: 1},
		plan{name: "a long partial request of three", subjects: three, scenarios: longest, instants: border[:1], skews: skews},
		plan{name: "an outage", subjects: single, scenarios: outages, places: places, instants: []int64{0, 4999, 5000}, skews: apart, attempts: 2, faults: 2},
		plan{name: "seconds later", subjects: single, scenarios: core, places: places, instants: seconds, skews: skews, attempts: 3, faults: 1, set: cleanup},
		plan{name: "a live limit", subjects: slices.Concat(single, several), scenarios: core, places: places, instants: border[:1], skews: apart, attempts: 2, faults: 1, live: true},
		plan{name: "slow answers", subjects: single, scenarios: core, places: places, instants: border, skews: skews, attempts: 2, faults: 1, set: slow},
		plan{name: "at once on an instance", subjects: single, scenarios: core, places: places, instants: border, skews: skews, attempts: 2, faults: 1, set: shared},
		plan{name: "at once, between two looks at the clock", subjects: single, scenarios: checks, places: places2[:2], instants: border, skews: same, attempts: 2, set: fine},
		plan{name: "more requests", subjects: single, scenarios: rest, places: places, instants: border, skews: skews, attempts: 3, faults: 2},
		plan{name: "high limits", subjects: large, scenarios: slices.Concat(core, rest), places: places, instants: border, skews: apart, attempts: 3, faults: 2},
		plan{name: "several limits", subjects: several, scenarios: core, places: places, instants: border, skews: apart, attempts: 2, faults: 2},
		plan{name: "a cycle of generations later", subjects: all, scenarios: pairs, instants: cycle, skews: skews, attempts: 2, faults: 1},
		plan{name: "several limits, seconds later", subjects: several, scenarios: slices.Concat(pairs, newest), instants: []int64{0, 4998, 6998}, skews: skews, attempts: 2, faults: 1},
		plan{name: "until a release has expired", subjects: single, scenarios: newest, instants: []int64{-1, 1000, 9999, 12_999}, skews: skews, attempts: 2, faults: 1},
		plan{name: "the end of a period, high limits", subjects: large, scenarios: slices.Concat(most, later), instants: []int64{-1, 8000, 9999}, skews: skews, attempts: 2, faults: 1},
		plan{name: "a long outage", subjects: lasting(), scenarios: outages, instants: []int64{0, 10_001, 20_001}, skews: apart, attempts: 1, faults: 3},
		plan{name: "a live limit above 100", subjects: crossing(), scenarios: core, instants: border[:1], skews: apart, attempts: 2, faults: 1, live: true},
		plan{name: "renewals", subjects: logs(slices.Concat(single, several)), scenarios: renewals, instants: held, skews: skews, attempts: 2, faults: 2, set: cleanup},
		plan{name: "a late copy of a renewal", subjects: logs(slices.Concat(single, several)), scenarios: renewals, instants: late, skews: apart, attempts: 2, faults: 2},
		plan{name: "renewals after the id", subjects: logs(lasting()), scenarios: renewals, instants: slices.Concat(twice20, []int64{44_999}), skews: skews, attempts: 2, faults: 2, set: cleanup},
		plan{name: "renewals and slow answers", subjects: logs(single), scenarios: renewals, instants: held, skews: apart, attempts: 2, faults: 1, set: slow},
		plan{name: "a group with mixed costs", subjects: costly(), scenarios: mixed, instants: border, skews: skews, attempts: 2, faults: 2},
		plan{name: "two versions side by side", subjects: sideBySide(), scenarios: slices.Concat(mixed, []scenario{{[]request{one, both, one}, 0}}), instants: []int64{-1, 0, 9999}, skews: same, attempts: 2, faults: 1, set: versions},
		plan{name: "renewals in a group with mixed costs", subjects: logs(costly()), scenarios: mixedHeld, instants: held, skews: skews, attempts: 2, faults: 2},
		// A check in a room sends up to six requests. With two faults, these systems don't end within hours.
		plan{name: "rooms", subjects: inRooms(), scenarios: rooms, instants: border, skews: skews, attempts: 2, faults: 1, set: crash},
		plan{name: "a room that fails alone", subjects: slices.Concat(inRooms(), slotsInRooms()), scenarios: rooms[:3], instants: []int64{0, 5000}, skews: skews, attempts: 2, set: fails},
		plan{name: "late copies in rooms", subjects: inRooms(), scenarios: rooms[:3], instants: late, skews: apart, attempts: 2, faults: 1, set: crash},
		// With two faults, only two attempts fit in the time of this proof, and no release beside them.
		plan{name: "two attempts in a full room", subjects: slices.Concat(inRooms(), slotsInRooms(), heldInARoom()), scenarios: inAFullRoom, instants: border[:1], skews: skews, attempts: 2, faults: 1, set: crash},
		plan{name: "two attempts in a full room, the end of a window", subjects: inRooms(), scenarios: inAFullRoom, instants: border, skews: same, attempts: 2, faults: 1},
		plan{name: "two attempts of a group in a full room", subjects: groupsInRooms(), scenarios: groupInAFullRoom, instants: border[:1], skews: apart, attempts: 2, faults: 1, set: crash},
		plan{name: "two attempts in a full prepaid room", subjects: prepaidInRooms(), scenarios: prepaidInAFullRoom, instants: border[:1], skews: apart, attempts: 2, faults: 1, set: crash},
		plan{name: "two attempts until a place comes back", subjects: fillingRooms(), scenarios: untilAPlaceComesBack[:1], instants: []int64{0, 5000}, skews: skews, attempts: 2, faults: 2, set: crash},
		plan{name: "three attempts until a place comes back", subjects: fillingRooms(), scenarios: untilAPlaceComesBack[1:], instants: []int64{0, 5000}, skews: apart, attempts: 2, faults: 1, set: crash},
		plan{name: "slots in rooms", subjects: slotsInRooms(), scenarios: heldInRooms, instants: held, skews: skews, attempts: 2, faults: 1, set: crash},
		plan{name: "midnight", subjects: days(), scenarios: core, instants: []int64{midnight - 2000, midnight - 1, midnight}, skews: skews, attempts: 2, faults: 1},
		plan{name: "prepaid limits", subjects: prepaids(), scenarios: slices.Concat(hot, hotter), instants: []int64{-1100, 0}, skews: apart, attempts: 2, faults: 1, set: crash},
		plan{name: "prepaid limits, seconds later", subjects: prepaids(), scenarios: hot, instants: []int64{0, 999, 1001}, skews: skews, attempts: 2, faults: 1},
		plan{name: "prepaid limits, at once on an instance", subjects: prepaids(), scenarios: slices.Concat(hot, hotter), instants: whole, skews: same, attempts: 2, faults: 1, set: shared},
		plan{name: "prepaid limits, slow answers", subjects: prepaids(), scenarios: hot, instants: whole, skews: apart, attempts: 2, faults: 1, set: slow},
		plan{name: "prepaid limits, an outage", subjects: prepaids(), scenarios: slices.Concat(hot, outages), instants: []int64{0, 5000}, skews: apart, attempts: 1, faults: 2},
		plan{name: "a live prepaid limit", subjects: prepaids(), scenarios: slices.Concat(hot[:2], hotter), instants: whole, skews: apart, attempts: 2, faults: 1, live: true},
		plan{name: "groups in rooms", subjects: groupsInRooms(), scenarios: mixedInRooms, instants: border, skews: apart, attempts: 2, faults: 1, set: crash},
		plan{name: "live limits of groups in rooms", subjects: groupsInRooms(), scenarios: mixedInRooms[:1], instants: border[:1], skews: same, attempts: 1, faults: 1, live: true},
		plan{name: "held in rooms", subjects: slotless(heldInARoom()), scenarios: held15[:3], instants: minutes, skews: apart, attempts: 2, faults: 1},
		plan{name: "slots held in rooms", subjects: logs(heldInARoom()), scenarios: held15, instants: minutes, skews: apart, attempts: 1, faults: 1},
		plan{name: "live limits, held in rooms", subjects: heldInARoom(), scenarios: held15[:1], instants: minutes[:2], skews: same, attempts: 1, faults: 1, live: true},
		plan{name: "quotas", subjects: quotas(), scenarios: mixed, instants: []int64{midnight - 1, midnight}, skews: skews, attempts: 2, faults: 1},
		plan{name: "live quotas", subjects: quotas(), scenarios: mixed[:3], instants: []int64{midnight - 1, midnight}, skews: same, attempts: 1, faults: 1, live: true},
		plan{name: "prepaid limits in rooms", subjects: prepaidInRooms(), scenarios: hotInRooms, instants: whole, skews: apart, attempts: 2, faults: 1, set: crash},
		plan{name: "live prepaid limits in rooms", subjects: prepaidInRooms(), scenarios: hotInRooms[:1], instants: whole, skews: same, attempts: 1, faults: 1, live: true},
		plan{name: "prepaid groups", subjects: prepaidGroups(), scenarios: hotter, instants: whole, skews: apart, attempts: 2, faults: 1},
		plan{name: "live prepaid groups", subjects: prepaidGroups(), scenarios: hotter, instants: whole, skews: same, attempts: 1, faults: 1, live: true},
		plan{name: "numbers", subjects: numbers(), scenarios: mixed, instants: border, skews: skews, attempts: 2, faults: 2},
		plan{name: "numbers, seconds later", subjects: numbers(), scenarios: mixed[:3], instants: []int64{0, 4998, 9999}, skews: skews, attempts: 2, faults: 1},
		plan{name: "numbers that change", subjects: numbers(), scenarios: slices.Concat(core[:2], core[3:6]), instants: border[:1], skews: apart, attempts: 2, faults: 1, live: true},
		plan{name: "numbers below and above 100", subjects: numbersAcross(), scenarios: core, instants: border[:1], skews: apart, attempts: 2, faults: 1, live: true},
		plan{name: "numbers in rooms", subjects: numbersInRooms(), scenarios: mixedInRooms[:1], instants: border[:1], skews: same, attempts: 1, faults: 1, live: true},
		plan{name: "slots with numbers", subjects: logs(numbers()), scenarios: mixedHeld, instants: held, skews: skews, attempts: 2, faults: 1},
		plan{name: "locks", subjects: locks(single), scenarios: locking, instants: locked, skews: skews, attempts: 2, faults: 2, set: cleanup},
		plan{name: "locks beside another limit", subjects: locks(several), scenarios: locking, instants: locked, skews: apart, attempts: 2, faults: 1},
		plan{name: "locks, slow answers", subjects: locks(single), scenarios: locking, instants: locked, skews: apart, attempts: 2, faults: 1, set: slow},
		plan{name: "locks, at once on an instance", subjects: locks(single), scenarios: slices.Concat(checks, locking), instants: locked, skews: apart, attempts: 1, set: shared},
		plan{name: "live lockouts", subjects: liveLocks(), scenarios: locking, instants: locked, skews: apart, attempts: 2, faults: 1, live: true},
		plan{name: "locks, released and cleared", subjects: slices.Concat(locks(single), locks(several)), scenarios: bothWays, instants: locked[:2], skews: apart, attempts: 2, faults: 1},
		plan{name: "locks in rooms", subjects: locksInRooms(), scenarios: locking, instants: locked[1:], skews: apart, attempts: 2, faults: 1, set: crash},
		plan{name: "three attempts", subjects: single, scenarios: core, places: places, instants: border, skews: skews, attempts: 3, faults: 3},
	)
}

// systems returns the systems of a plan.
func (p plan) systems() (all []*system) {
	if p.list != nil {
		return p.list
	}
	for _, s := range p.subjects {
		policies := p.policies(s.text)
		scenarios := p.scenarios
		if policies[0].Queues() {
			scenarios = p.places
		}
		for _, c := range scenarios {
			if p.live && c.asksForMore() {
				continue
			}
			for _, skew := range p.skews {
				y := &system{kinds: s.kinds, policies: policies, skew: skew, instants: p.instants, requests: c.requests, attempts: p.attempts, faults: p.faults}
				y.prefill = s.prefill + c.prefill
				y.numbered, y.inRoom = optional(s.numbered), optional(s.inRoom)
				y.room, y.dear, y.dearRoom, y.hold = p.policies(s.room), p.policies(s.dear), p.policies(s.dearRoom), s.hold
				if p.set != nil {
					p.set(y)
				}
				all = append(all, y)
			}
		}
	}
	return all
}

// policies returns the policies of the texts that are in force one after the other: all
// texts, or only the first.
func (p plan) policies(texts []string) (all []*rules) {
	if !p.live {
		texts = texts[:min(1, len(texts))]
	}
	for _, text := range texts {
		all = append(all, rulesOf(text))
	}
	return all
}
