package policy

import "time"

// Several instances count in one item, each by its own clock, and a write can be
// on its way for a while. All times that follow from this have their home here.
const (
	// ClocksApart is how far two instances' clocks may differ. Exactness relies on it.
	ClocksApart = 2 * time.Second

	// Late is how late a write can land: the longest time of one decision.
	Late = 5 * time.Second

	// Behind is how far a write can be behind the item, by another clock.
	Behind = ClocksApart + Late

	// PeriodsKept is in how many earlier periods of Behind, besides the current
	// one, an item keeps its requests' ids.
	PeriodsKept = 3

	// IDsKept is how long an item keeps a check's id at most: 28 s. It keeps an id
	// for at least PeriodsKept periods, which is 21 s.
	IDsKept = (PeriodsKept + 1) * Behind

	// Promised is how long an id is remembered at least, on one clock, unless its
	// fixed window ends before. A repeat within that time is counted once, and a
	// release works as long.
	Promised = 20 * time.Second

	// HeldPeriod, HeldKept and HeldPromised replace Behind, IDsKept and Promised
	// for checks that hold their receipt.
	HeldPeriod   = 5 * time.Minute
	HeldKept     = (PeriodsKept + 1) * HeldPeriod
	HeldPromised = 15 * time.Minute

	// ClockSlack is how far two clocks may differ before one of them counts in an
	// item that has already expired on the other.
	ClockSlack = 120 * time.Second
)

// An id lasts as long as the promise, or longer. Otherwise this does not compile.
const _ = uint64(PeriodsKept*Behind-Promised) + uint64(PeriodsKept*HeldPeriod-HeldPromised)
