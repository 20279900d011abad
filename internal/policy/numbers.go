package policy

import (
	"errors"
	"fmt"
	"slices"
)

// A limit with a max takes a number from the caller, such as what a customer has bought. It
// then is the limit's text with that number, as a tier that nobody had to name:
//
//	bucket 100/1m burst 150 max 5000   as it is     100/1m burst 150
//	                                   with 200     200/1m burst 300
//	                                   with 9000    5000/1m burst 7500
//
// All numbers count in one item, and each decision goes by its own. So a check with a lower
// number is refused if more is counted, and counts nothing. The max decides how long ids are
// kept and what an item can bear, because the next caller can give it.

// A scalable kind takes a number from a caller. With returns it with the numbers of r instead of
// its own.
type scalable interface {
	with(r Rate) kind
}

// With returns r with n as its limit, or with Max if that is lower. A bucket's burst changes in
// the same proportion, rounded down. Both are at least the cost, so that an action fits.
func (r Rate) With(n int64) Rate {
	n = min(n, r.Max)
	if r.Burst > 0 {
		r.Burst = max(r.cost(), scale(n, r.Burst, r.Limit, 0))
	}
	r.Limit = max(r.cost(), n)
	return r
}

// highest returns r with the highest limit that it can have.
func (r Rate) highest() Rate {
	if r.Max > 0 {
		return r.With(r.Max)
	}
	return r
}

// minInterval is the least interval of a bucket at its max, in milliseconds. An interval is
// rounded up to whole milliseconds, which makes the bucket at most 10 % slower than its number.
const minInterval = 9

// checkMax returns an error if k, which is made of r, can't have every number up to r.Max.
func (r Rate) checkMax(k kind) error {
	most, why := int64(million), ""
	switch k.(type) {
	case sharedFixed:
		most, why = million-1, "beside other limits"
	case log:
		most, why = maxSlots, "because each action takes a slot of the item"
	case bucket:
		most, why = r.Window.Milliseconds()/minInterval, fmt.Sprintf("so that an action comes back every %d ms or more", minInterval)
	}
	burst := r.highest().Burst
	switch {
	case r.Max == 0:
		return nil
	case r.Prepaid:
		return errors.New("max does not go with prepaid, because a lease would be by the number of one caller")
	case r.Max < r.Limit:
		return fmt.Errorf("max is %d, want at least the limit, %d", r.Max, r.Limit)
	case r.Max < r.cost():
		return fmt.Errorf("max is %d, and an action costs %d, so each number would refuse it", r.Max, r.Cost)
	case r.Max > most:
		return fmt.Errorf("max is %d, want at most %d, %s", r.Max, most, why)
	case burst > million:
		return fmt.Errorf("max is %d, and the burst would be %d, want at most %d", r.Max, burst, million)
	}
	return nil
}

// With returns p with the numbers that a caller gives. Number returns the one for the limit with
// a name, and whether there is one. A limit without a max keeps its own. If no limit gets a
// number, the result is p, whose leases serve as before; see [Policy.Same].
func (p Policy) With(number func(limit string) (n int64, ok bool)) Policy {
	given := false
	for i, l := range p.limits {
		n, ok := number(l.rate.Name)
		if !ok || l.rate.Max == 0 {
			continue
		}
		if !given {
			p.limits, given = slices.Clone(p.limits), true
		}
		r := l.rate.With(n)
		l.given, l.short = true, n < r.cost()
		l.rate, l.kind = r, l.kind.(scalable).with(r)
		p.limits[i] = l
	}
	if !given {
		return p
	}
	p.index()
	return p
}

// TakesNumber reports whether p is one limit, and a caller can give its number.
func (p Policy) TakesNumber() bool { return len(p.limits) == 1 && p.limits[0].rate.Max > 0 }

// TooLow returns the name of the first limit whose number, which the caller gave, has no room for
// n actions at once. It returns false if there is none.
func (p Policy) TooLow(n int64) (limit string, ok bool) {
	for _, l := range p.limits {
		if l.given && (l.short || n > l.max()) {
			return l.rate.Name, true
		}
	}
	return "", false
}

// Highest returns the most actions in a window, whichever number a caller gives.
func (p Policy) Highest() int64 { return p.highest }
