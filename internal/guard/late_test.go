package guard_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/limits"
)

// Lambda freezes an instance after it answers. So a request that asks the table
// for nothing else waits for the live limits: if all requests of an instance are
// such ones, its limits are never older than 30 s at the next decision.
func TestAnExemptRequestWaitsForTheLiveLimits(t *testing.T) {
	const slow = 300 * time.Millisecond // the table
	off := live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "off"}}}
	for name, tt := range map[string]struct {
		before  live.Settings // in force
		request Request
		timeout time.Duration // DECISION_TIMEOUT
		left    time.Duration // until Lambda's deadline; 0: none
		wait    time.Duration
	}{
		"a live mode off":                  {before: off, wait: slow},
		"a granted role":                   {before: grant("admin", ""), wait: slow},
		"a role of the caller":             {request: Request{Roles: []string{"admin"}}, wait: slow},
		"an activity without a limit":      {before: off, request: Request{Activity: "like"}, wait: 20 * time.Millisecond},
		"a request that asks the table":    {wait: 20 * time.Millisecond},
		"at most until Lambda's deadline":  {before: off, left: 250 * time.Millisecond, wait: 150 * time.Millisecond},
		"at most as long as a decision":    {before: off, timeout: 200 * time.Millisecond, wait: 200 * time.Millisecond},
		"at most until the caller goes on": {before: off, left: time.Millisecond, wait: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := newBench(t), &settings{}
				b.Limiter.Timeout = tt.timeout
				b.Live = &live.Follower{Source: s, Guards: limits.All, Now: func() time.Time { return b.now }}
				s.set(b, tt.before)
				r := tt.request
				r.UserID, r.Activity = canary, cmp.Or(r.Activity, "create_post")
				if _, err := b.Decide(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Limit: "5/1m"}}})
				s.slow = slow
				ctx := t.Context()
				if tt.left > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.left)
					defer cancel()
				}
				began, asked := time.Now(), b.store.asked
				if _, err := b.Decide(ctx, r); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != tt.wait {
					t.Errorf("the answer took %v, want %v", took, tt.wait)
				}
				if exempt := name != "a request that asks the table"; exempt == (b.store.asked > asked) {
					t.Errorf("%d requests to the table for the decision", b.store.asked-asked)
				}
				if a, _ := b.Live.Limits().Activity(b.Guard.Activities[0]); (a.Limit.Most() == 5) != (tt.wait == slow) {
					t.Errorf("the limit is %q after a wait of %v", a.Limit, tt.wait)
				}
				time.Sleep(time.Second) // for the look
			})
		})
	}
}
