package command

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// If counted actions expire during the race, more than the limit gets through,
// so verify must not compare that with the limit.
func TestVerifyNeedsARaceThatIsShorterThanTheLimit(t *testing.T) {
	for _, tt := range []struct {
		limit string
		each  time.Duration // how long an answer takes
		want  error
	}{
		{"bucket 1/5s", 20 * time.Millisecond, nil},
		{"bucket 1/5s", 6 * time.Second, errExpired},
		{"bucket 10/1m burst 15", 100 * time.Millisecond, nil},
		{"bucket 10/1m burst 15", time.Second, errExpired},
		{"log 10/1s", 10 * time.Millisecond, nil},
		{"log 10/1s", 200 * time.Millisecond, errExpired},
		{"second: 10/1s, day: 100/1d", 10 * time.Millisecond, nil},
		{"second: 10/1s, day: 100/1d", 200 * time.Millisecond, errExpired},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := policy.Must(tt.limit)
			limiter := &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return time.Now().AddDate(25, 0, 0) }}
			ask := func(ctx context.Context, r guard.Request) (guards.Decision, error) {
				time.Sleep(tt.each)
				d, err := limiter.Decide(ctx, r.Op, ratelimit.Request{UserID: "u1", Activity: "a", Policy: p, Count: 1, ID: "r" + time.Now().String(), Fresh: true})
				answer := guard.Answer{Request: r, Allowed: d.Allowed, Reason: d.Reason, Decision: &d}
				return answer.Public(), err
			}
			c := verifyCommand{Callers: 1}
			v, err := c.race(t.Context(), session{err: io.Discard, now: limiter.Now}, ask, []limits.Activity{{Name: "a", Limit: p}})
			if !errors.Is(err, tt.want) || tt.want == nil && !v.Exact {
				t.Errorf("%s, %v for each answer: %+v, %v, want %v", tt.limit, tt.each, v, err, tt.want)
			}
		})
	}
}

// A guard that lets too many through in a short time is wrong.
func TestVerifyReportsTooManyOfALimitWithoutAWindow(t *testing.T) {
	ask := func(_ context.Context, r guard.Request) (guards.Decision, error) {
		return guards.Decision{Allowed: r.Op == guard.Check, Limit: 10, ResetAt: 3_600_000, At: 1}, nil
	}
	c := verifyCommand{Callers: 5}
	if v, err := c.race(t.Context(), session{now: atPinned}, ask, one("log 10/1h")); err != nil || v.Exact || v.Allowed != 15 {
		t.Errorf("%+v, %v, want 15 of 10 allowed", v, err)
	}
}
