package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// promised requires that last, which was counted or renewed last, is within each
// limit of the policy that counted it. That policy can have a lower limit than
// those that counted the other entries: then the lower one holds for last.
func (x *explorer) promised(all []entry, last entry) error {
	user := x.keys[last.item].UserID
	entries := x.which(all, func(e *entry) bool { return x.keys[e.item].UserID == user && !x.isApart(e, int(last.writer)) })
	for i, r := range x.policyOf(int(last.item), int(last.writer), last.limit).Rates() {
		got, most, err := x.against(r, entries, i, last)
		if err == nil && got > most {
			err = fmt.Errorf("%s makes it %d actions in limit %d, want at most %d", name(int(last.writer)), got, i, most)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// against returns how many actions count against a limit at the last one, and how many may,
// by what the documentation of the kind says. It knows nothing of how the kind keeps its
// state. A kind that has no figures in shown, and no case here, fails the exploration.
func (x *explorer) against(r policy.Rate, counted []entry, limit int, last entry) (got, most int64, err error) {
	now := last.counted
	switch r.Kind {
	case "bucket":
		got, most = x.inAnyTime(r, counted, limit)
		return got, most, nil
	case "lockout":
		return x.series(counted, limit).n(limit), r.Limit, nil
	case "reservoir":
		return sum(counted, limit, func(e entry) bool { return windowOf(r, e.place) == windowOf(r, last.place) }), r.Limit, nil
	case "log": // any period as long as Window, which ends at the latest action by the clock that is most ahead
		now = last.at
		for _, e := range counted {
			now = max(now, e.latest())
		}
	}
	shows, ok := shown[r.Kind]
	if !ok {
		return 0, 0, fmt.Errorf("the kind %s has no promise in promise_test.go", r.Kind)
	}
	return shows(r, counted, limit, now), r.Limit, nil
}

func sum(entries []entry, limit int, which func(entry) bool) (n int64) {
	for _, e := range entries {
		if which(e) {
			n += e.left[limit]
		}
	}
	return n
}

var berlin, _ = time.LoadLocation("Europe/Berlin")

// windowOf returns the number of the window at a time, or the number of the day since
// 1970.
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

// inAnyTime is the promise of a bucket: in any time t at most Burst actions and
// one more for each interval. Clocks that are apart make t longer by as much. If
// the limit changed, the largest burst and the shortest interval bound it. An
// action that was given back leaves what had come back by itself in the
// meantime.
func (x *explorer) inAnyTime(r policy.Rate, counted []entry, limit int) (got, most int64) {
	interval, burst := r.Window/time.Duration(r.Limit), r.Burst
	for _, e := range counted {
		rate := x.policyOf(int(e.item), int(e.writer), e.limit).Rates()[limit]
		interval, burst = min(interval, rate.Window/time.Duration(rate.Limit)), max(burst, rate.Burst)
	}
	var latest int64
	for _, e := range slices.Backward(counted) {
		latest, got = max(latest, e.counted), got+e.left[limit]
		most = burst + e.freed + (latest-e.counted+x.skew.Milliseconds())/interval.Milliseconds()
		if got > most {
			return got, most
		}
	}
	return got, most
}
