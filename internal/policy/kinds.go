package policy

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A kind is one way to limit. Its methods are pure functions; [Policy]'s methods with
// the same names describe what they do. The laws in laws_test.go hold for every kind.
type kind interface {
	item(now int64, s State) (window, expires int64) // s is nil, or what the item holds
	stays() (least, most int64)                      // for how long an item matters after an action, in milliseconds
	take(now, n int64, seed uint64, s State) (Update, bool)
	undo(now, at, n int64, s State) (Update, bool)
	counted(now int64, s State) int64
	read(now, n int64, s State) Reading
}

// A Kind describes one way to limit, for documents and tests.
type Kind struct {
	Name     string   // the first word of the text form; "fixed" may be left out
	Examples []string // text forms of different sizes; the first one is for people, all are for tests

	// make builds the kind of a rate, whose numbers are as Rate describes, or returns an
	// error if it can't. Shared is set if the item also holds other limits.
	make func(r Rate, shared bool) (kind, error)

	options   []string          // the options that the text form takes
	without   map[string]string // options of other kinds, and why this one can't have them
	once      bool              // at most one limit of this kind in a policy
	apart     string            // the kind that can't stand beside this one in a policy; empty: none
	alike     bool              // limits of a group that share a count are the same in all numbers
	anyWindow bool              // limits with different windows can share a count
	crosses   []int64           // the shares of the limit that Reading.Crossed tells, in percent, the highest first
}

// The names of kinds that can't stand beside each other.
const (
	reservoirKind = "reservoir"
	lockoutKind   = "lockout"
)

// notPrepaid says why a kind with a place for each action is never prepaid.
const notPrepaid = "each of its actions has a place of its own in the item, so there is nothing to take in advance"

// kinds lists every way to limit. A new kind is a new file and an entry here.
var kinds = []Kind{
	{
		Name: "fixed", make: makeFixed, options: []string{"in", "cost", "prepaid", "max"}, crosses: []int64{100, 80},
		Examples: []string{"10/1m", "1/3ms", "3/9ms", "9/26ms", "100/1h", "1000/1h", "9/26ms cost 2", "7/26ms cost 2", "9/day in Europe/Berlin", "5/week", "9/month in America/Santiago", "101/26ms prepaid", "3/26ms max 9"},
	},
	{
		Name: "bucket", make: makeBucket, options: []string{"burst", "keep", "cost", "prepaid", "max"}, anyWindow: true,
		Examples: []string{"bucket 10/1m burst 15", "bucket 1/5s keep 1h", "bucket 1/3ms", "bucket 3/9ms burst 2", "bucket 1/10ms burst 3", "bucket 3/9ms burst 7 cost 3", "bucket 1/99ms burst 3 max 11"},
	},
	{
		Name: "log", make: makeLog, options: []string{"cost", "max"}, once: true, without: map[string]string{"prepaid": notPrepaid},
		Examples: []string{"log 100/12h", "log 1/3ms", "log 3/9ms", "log 9/26ms", "log 60/12h", "log 9/26ms cost 2", "log 3/26ms max 9"},
	},
	{
		Name: "sliding", make: makeSliding, options: []string{"cost", "prepaid", "max"},
		Examples: []string{"sliding 50/1h", "sliding 1/3ms", "sliding 3/9ms", "sliding 9/26ms", "sliding 1000/1d", "sliding 9/26ms cost 2", "sliding 101/26ms prepaid", "sliding 3/26ms max 9"},
	},
	{
		Name: reservoirKind, make: makeReservoir, options: []string{"ahead"}, once: true, apart: lockoutKind,
		without:  map[string]string{"prepaid": notPrepaid, "max": "a place that was given stays given, whatever number comes next"},
		Examples: []string{"reservoir 10/10s ahead 15m", "reservoir 1/3ms ahead 9ms", "reservoir 3/9ms ahead 26ms", "reservoir 2/7ms ahead 20ms", "reservoir 10/10s"},
	},
	{
		Name: lockoutKind, make: makeLockout, options: []string{"for", "to"}, apart: reservoirKind, alike: true, crosses: []int64{100},
		without: map[string]string{
			"cost":    "with a cost of 2 and a limit of 5, the count would stay at 4, and nothing would lock",
			"prepaid": "what is taken in advance can't be given back, as an attempt that succeeds is",
			"max":     "a caller with another number would end the lock or begin it",
		},
		Examples: []string{"lockout 5/15m for 30m", "lockout 5/15m for 1m to 1d", "lockout 3/4s for 2s to 9s", "lockout 1/1s for 1s", "lockout 9/4s for 3s"},
	},
}

// Kinds returns every way to limit.
func Kinds() []Kind { return kinds }

// kindNamed finds a kind by its name.
func kindNamed(name string) (Kind, bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// A Rate holds the numbers of one limit. [Parse] keeps them in these ranges.
type Rate struct {
	Name   string        // the limit's name, if the policy has several; else empty
	Kind   string        // the name of its kind
	Limit  int64         // units in one window, 1 to 1,000,000; an action takes Cost of them
	Max    int64         // fixed, bucket, log, sliding: the highest Limit that a caller can give, Limit to 1,000,000; 0: none can be given
	Window time.Duration // a positive whole number of milliseconds, at most 366 days; with a Unit its usual length
	Unit   string        // fixed: day, week or month, if these are the windows; else empty
	Zone   string        // fixed with a Unit: the IANA name of its time zone; empty: UTC
	Burst  int64         // bucket: actions at once, 1 to 1,000,000; else 0
	Ahead  time.Duration // reservoir: how far ahead it gives places, as Window or 0; else 0
	Keep   time.Duration // bucket: how long an idle item is kept at least, as Window or 0; else 0

	Lock    time.Duration // lockout: how long its first lock lasts, 1 s to 366 days; else 0
	MaxLock time.Duration // lockout: how long a later lock lasts at most, Lock to 366 days; else 0

	Prepaid bool // fixed, bucket, sliding: a busy process takes many actions with one update

	Cost int64 // how much of Limit (bucket: of Burst) one action takes, 2 or more; 0: one. A reservoir and a lockout have none
}

// cost returns how much of the limit one action takes.
func (r Rate) cost() int64 { return max(1, r.Cost) }

// Actions returns how many actions fit in one window: Limit divided by Cost.
func (r Rate) Actions() int64 { return r.Limit / r.cost() }

// million is the highest limit and burst. Together with maxWindow it keeps
// products within 64 bits.
const (
	million   = 1_000_000
	maxWindow = 366 * 24 * time.Hour
)

// Latest is the last time that a policy decides by: the end of the year 2261, in
// Unix milliseconds. The stamps of later windows do not fit in 64 bits.
const Latest = 9_214_646_399_999

// An item keeps an id of 6 bytes for each request of the last 28 s (package
// ratelimit). With maxRequests in that time it has about 60 KB, and a reservoir
// about 200 KB. DynamoDB accepts 400 KB, but a write costs a unit for each KB of the item.
const maxRequests = 10_000

// checkPace returns an error if a user can have more than maxRequests while the item
// keeps an id. The user uses up r at an even pace, without the burst. Of a lockout, it is the pace
// of its longest lock, if that is shorter than the window.
func (r Rate) checkPace(kept time.Duration) error {
	r = r.highest()
	if r.MaxLock > 0 {
		r.Window = min(r.Window, r.MaxLock)
	}
	most := maxRequests * r.Window.Milliseconds() / kept.Milliseconds()
	switch {
	case r.Actions() <= most, r.Prepaid:
		return nil
	case most == 0:
		return fmt.Errorf("window is %s, want at least %s, because the item keeps an id for each request of the last %s",
			span(r.Window), span(time.Duration(kept.Milliseconds()/maxRequests+1)*time.Millisecond), span(kept))
	}
	what, advice := "limit", ""
	if k, _ := kindNamed(r.Kind); r.Max > 0 {
		what = "max"
	} else if k.takes("prepaid") && kept == IDsKept {
		advice = "write prepaid behind it, "
	}
	return fmt.Errorf("%s is %d in %s, want at most %d, because the item keeps an id for each request of the last %s; "+
		"%sdivide the limit among several user ids, such as u1-0 to u1-9, or count in larger units",
		what, r.Actions(), span(r.Window), most, span(kept), advice)
}

// CheckHold returns an error if p is too fast for an activity that holds its receipts,
// with more than 500 actions a minute. The item keeps their ids for [HeldKept].
func (p Policy) CheckHold() error {
	for _, l := range p.limits {
		if l.rate.Prepaid {
			return fmt.Errorf("%q is prepaid, and a lease keeps no ids for Hold", p)
		}
		if err := l.rate.checkPace(HeldKept); err != nil {
			return fmt.Errorf("%q is too fast for Hold: %w", p, err)
		}
	}
	return nil
}

// plan returns the update that performs one act if all terms hold.
func plan(act Act, guard ...Term) Update {
	return Update{If: [][]Term{guard}, Acts: []Act{act}}
}

// expiry returns the first whole Unix second that is at least slack later than
// until, which is in Unix milliseconds.
func expiry(until int64, slack time.Duration) int64 {
	return (until + slack.Milliseconds() + 999) / 1000
}

// millis converts milliseconds to a Duration, which can hold 292 years at most.
func millis(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// scale returns (a*b + up) / c, rounded down, even if the product does not fit
// in 64 bits. With up = c-1 the division rounds up. If a <= 0 it returns 0. b and up
// must not be negative, and c must be positive. A larger result becomes forever.
func scale(a, b, c, up int64) int64 {
	const forever = math.MaxInt64 / 4 // far away, and sums with it still fit
	if a <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(a), uint64(b))
	low, carry := bits.Add64(low, uint64(up), 0)
	if high += carry; high >= uint64(c) {
		return forever
	}
	q, _ := bits.Div64(high, low, uint64(c))
	return int64(min(q, forever))
}
