package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A promise is what the documentation of a kind says about the actions that it
// admits. It knows nothing of how the kind keeps its state. New is the action
// that was counted last. The promise returns how many actions count against it,
// and how many may.
type promise func(x *explorer, r policy.Rate, counted []entry, limit int, last entry) (got, most int64)

// promises has one promise for each kind. A kind without a promise fails the
// exploration, so a new kind needs a line here.
var promises = map[string]promise{
	"fixed":     inWindow(func(e entry) int64 { return e.at }),
	"reservoir": inWindow(func(e entry) int64 { return e.place }),
	"log":       inAnyWindow,
	"sliding":   inWeightedWindow,
	"bucket":    inAnyTime,
}

// promised requires that last, which was counted or renewed last, is within each
// limit of the policy that counted it. That policy can have a lower limit than
// those that counted the other entries: then the lower one holds for last.
func (x *explorer) promised(all []entry, last entry) error {
	var entries []entry
	for _, e := range all {
		if x.keys[e.item].UserID == x.keys[last.item].UserID {
			entries = append(entries, e)
		}
	}
	for i, r := range x.policyOf(int(last.item), last.limit).Rates() {
		p, ok := promises[r.Kind]
		if !ok {
			return fmt.Errorf("the kind %s has no promise in promise_test.go", r.Kind)
		}
		if got, most := p(x, r, entries, i, last); got > most {
			return fmt.Errorf("%s makes it %d actions in limit %d, want at most %d", name(int(last.writer)), got, i, most)
		}
	}
	return nil
}

func sum(entries []entry, limit int, which func(entry) bool) (n int64) {
	for _, e := range entries {
		if which(e) {
			n += e.left[limit]
		}
	}
	return n
}

// inWindow is the promise of at most Limit actions in each window of the clock.
func inWindow(when func(entry) int64) promise {
	return func(_ *explorer, r policy.Rate, counted []entry, limit int, last entry) (got, most int64) {
		return sum(counted, limit, func(e entry) bool { return windowOf(r, when(e)) == windowOf(r, when(last)) }), r.Limit
	}
}

var berlin, _ = time.LoadLocation("Europe/Berlin")

// windowOf returns the number of the window at a time, or that of the day since 1970.
func windowOf(r policy.Rate, at int64) int64 {
	if r.Unit == "" {
		return at / r.Window.Milliseconds()
	}
	if r.Unit != "day" || r.Zone != berlin.String() {
		panic("this test knows days in Berlin only")
	}
	year, month, day := time.UnixMilli(at).In(berlin).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86_400
}

// inAnyWindow is the promise of at most Limit actions in any period as long as
// Window, which ends at the latest action. An action has expired if it has by
// the clock that is most ahead.
func inAnyWindow(_ *explorer, r policy.Rate, counted []entry, limit int, _ entry) (got, most int64) {
	var latest int64
	for _, e := range counted {
		latest = max(latest, e.latest())
	}
	return sum(counted, limit, func(e entry) bool { return e.latest() > latest-r.Window.Milliseconds() }), r.Limit
}

// inWeightedWindow is the promise of the sliding window counter: the actions of
// this period, and the part of the previous period that the window still covers.
func inWeightedWindow(_ *explorer, r policy.Rate, counted []entry, limit int, last entry) (got, most int64) {
	w := r.Window.Milliseconds()
	k := last.at / w
	in := func(period int64) int64 {
		return sum(counted, limit, func(e entry) bool { return e.at/w == period })
	}
	return in(k) + in(k-1)*(w-last.at%w)/w, r.Limit
}

// inAnyTime is the promise of a bucket: in any time t at most Burst actions and
// one more for each interval. Clocks that are apart make t longer by as much. If
// the limit changed, the largest burst and the shortest interval bound it. An
// action that was given back leaves what had come back by itself in the
// meantime.
func inAnyTime(x *explorer, r policy.Rate, counted []entry, limit int, last entry) (got, most int64) {
	interval, burst := r.Window/time.Duration(r.Limit), r.Burst
	for _, e := range counted {
		rate := x.policyOf(int(e.item), e.limit).Rates()[limit]
		interval, burst = min(interval, rate.Window/time.Duration(rate.Limit)), max(burst, rate.Burst)
	}
	var latest int64
	for _, e := range slices.Backward(counted) {
		latest, got = max(latest, e.at), got+e.left[limit]
		most = burst + e.freed + (latest-e.at+x.skew.Milliseconds())/interval.Milliseconds()
		if got > most {
			return got, most
		}
	}
	_ = last
	return got, most
}
