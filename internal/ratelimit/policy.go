package ratelimit

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

// A Policy is one way to limit. Its methods are pure. The laws that each must
// keep are the property tests in laws_test.go; listing a policy there is what
// makes it one.
type Policy interface {
	// String is the policy in words, for people.
	String() string

	// Validate says what is wrong with the configuration: nil where nothing is.
	// The other methods may be called only on a valid policy.
	Validate() error

	// Quota is the most that a request can be granted at once, and the time in
	// which so much comes back: what callers are told of the policy.
	Quota() (limit int64, window time.Duration)

	// Place names the item that counts at now, and its end.
	Place(now int64) Place

	// Plan decides n actions at now, n from 1 to the limit.
	Plan(now, n int64) Plan

	// Release gives back n actions that were counted at at, in the item of at. The
	// plan refuses where they don't count any more. byID says that the request's
	// id, which the item must hold, is the receipt; otherwise the state is.
	Release(now, at, n int64) (p Plan, byID bool)

	// Figures reads s at now.
	Figures(now int64, s State) Figures

	// Wait is how long after now n actions fit in s, if nothing else is counted:
	// 0 where they fit now. A millisecond less is too early.
	Wait(now, n int64, s State) time.Duration
}

// A Place is where a policy counts at a moment.
type Place struct {
	Window  int64 // see [Key]
	Expires int64 // Unix seconds: dropping the item from then on changes no decision
	Ordered bool  // the order in which requests were counted matters
}

// Figures are what a caller is told of a state.
type Figures struct {
	Used      int64 // actions counted in the current window
	Remaining int64 // actions left in it: the most that is taken now; never below 0
	ResetAt   int64 // when all that counts now has ceased to; now where nothing counts
	WindowKey int64 // floor(now / window); 0 where the policy has no windows
}

// Share says why two policies can't count in the same items, as the tiers of
// one activity do: nil where they can.
func Share(a, b Policy) error {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return fmt.Errorf("is a %T, want a %T as the others, with whom it shares a count", b, a)
	}
	switch a := a.(type) {
	case FixedWindow, SlidingWindow:
		_, ours := a.Quota()
		if _, theirs := b.Quota(); ours != theirs {
			return fmt.Errorf("counts in windows of %v, want %v as the others, with whom it shares a count", theirs, ours)
		}
	case Reservoir:
		return errors.New("is a reservoir's, whose places are the same for all")
	case Several:
		for i, m := range b.(Several) {
			if i >= len(a) || m.Name != a[i].Name {
				return fmt.Errorf("has a limit %q that the others have not", m.Name)
			}
			if err := Share(a[i].Policy, m.Policy); err != nil {
				return err
			}
		}
	}
	return nil
}

// clockSlack is how much two clocks may differ before an item that one of them
// still counts in has expired for the other.
const clockSlack = 120 * time.Second

// expiry is the first second, in Unix seconds, at which until (Unix
// milliseconds) is past by more than slack.
func expiry(until int64, slack time.Duration) int64 {
	return (until + slack.Milliseconds() + 999) / 1000
}

// millis is a number of milliseconds as a time.
func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// million is the most of anything: with longestWindow it keeps products within 64
// bits.
const (
	million       = 1_000_000
	longestWindow = 366 * 24 * time.Hour
)

// validWindow says what is wrong with a limit in a window.
func validWindow(limit int64, window time.Duration) error {
	if limit < 1 || limit > million {
		return fmt.Errorf("limit is %d, want at least 1, and at most %d", limit, million)
	}
	if window < time.Millisecond || window%time.Millisecond != 0 || window > longestWindow {
		return fmt.Errorf("window is %v, want a positive whole number of milliseconds, and at most 366 days", window)
	}
	return nil
}

// per is a time in words that follow a number.
func per(d time.Duration) string {
	switch d {
	case time.Second:
		return "a second"
	case time.Minute:
		return "a minute"
	case time.Hour:
		return "an hour"
	case 24 * time.Hour:
		return "a day"
	}
	return "in " + span(d)
}

// span is a time in words, in the largest unit that fits.
func span(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}, {time.Second, "s"}} {
		if d%unit.of == 0 && (d > unit.of || unit.name == "s") {
			return fmt.Sprintf("%d %s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
