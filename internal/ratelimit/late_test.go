package ratelimit_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A partial request can ask for fewer actions in a later attempt. These attempts
// arrive late, after another request released what it had. The decision tells how
// many actions the attempt that landed took.
func TestALatePartialAttemptTellsWhatItTook(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for name, tt := range map[string]struct {
			// Each attempt, in order: "away" never arrives, "late" arrives before the
			// last one, "more" arrives after another action was counted.
			attempts []string
			want     int64
		}{
			"the first attempt, for all three":    {[]string{"late", "pass", "last"}, 3},
			"the third attempt, for two":          {[]string{"away", "pass", "late", "more", "last"}, 2},
			"the last attempt, for the one left":  {[]string{"away", "pass", "away", "more", "pass"}, 1},
			"the last attempt, for the two left":  {[]string{"away", "pass", "away", "pass"}, 2},
			"the first attempt, answered at once": {[]string{"pass", "pass"}, 2},
		} {
			ask := func(id string, n int64) Request {
				r := request(three, id, n)
				r.UserID, r.Policy, r.Fallback = name, fourAMinute, false
				return r
			}
			plain := &Limiter{Store: store, Now: newClock().now}
			two := ask("two", 2)
			two.At = mustCheck(t, plain, two).At
			var late func() error
			f := &faulty{Store: store}
			for _, what := range tt.attempts {
				f.faults = append(f.faults, func(_ context.Context, perform func() error) error {
					switch what {
					case "away":
						return errors.New("timeout")
					case "late":
						late = perform
						return errors.New("timeout")
					case "more":
						mustCheck(t, plain, ask("more", 1))
					case "last":
						mustDo(t, plain, Release, two)
						if err := late(); err != nil {
							t.Error(err)
						}
					}
					return perform()
				})
			}
			l := &Limiter{Store: f, Now: newClock().now, NewBudget: noPauses(len(tt.attempts))}
			some := ask("some", 3)
			some.Partial, some.Fresh = true, true
			d := mustCheck(t, l, some)
			if d.Granted != tt.want || d.Reason != OK || d.At == 0 {
				t.Errorf("%s: %s, granted %d, want %d and a receipt", name, inWords(d), d.Granted, tt.want)
			}
			before := d.Used
			some.At, some.Count = d.At, d.Granted
			if d, err := plain.Decide(t.Context(), Release, some); err != nil || d.Used != before-tt.want {
				t.Errorf("%s: %d used after the release, %v, want %d", name, d.Used, err, before-tt.want)
			}
		}
	})
}
