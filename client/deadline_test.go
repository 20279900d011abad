package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/client"
)

// OnOutage decides shortly before the deadline of the caller, and calls fail
// fast afterwards.
func TestACallEndsBeforeTheCallersDeadline(t *testing.T) {
	for _, tt := range []struct {
		deadline time.Duration
		takes    time.Duration
		outage   bool
	}{
		{time.Minute, 3 * time.Second, true},
		{3 * time.Second, 2950 * time.Millisecond, true},
		{time.Second, 950 * time.Millisecond, true},
		{350 * time.Millisecond, 300 * time.Millisecond, true},
		{349 * time.Millisecond, 349 * time.Millisecond, false}, // says nothing about the guard
		{10 * time.Millisecond, 10 * time.Millisecond, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, f := with(t, client.Options{OnOutage: client.Deny}, silent)
			ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
			defer cancel()
			began := time.Now()
			d, err := g.Check(ctx, "create_post", client.Request{UserID: "u1"})
			if took := time.Since(began); took != tt.takes {
				t.Errorf("%v: took %v, want %v", tt.deadline, took, tt.takes)
			}
			if tt.outage && (err != nil || d.Allowed || d.Outage == nil) || !tt.outage && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %+v, %v, want an outage: %v", tt.deadline, d, err, tt.outage)
			}
			asked := len(f.events)
			_, _ = g.Status(t.Context(), "create_post", client.Request{UserID: "u1"})
			if failsFast := len(f.events) == asked; failsFast != tt.outage {
				t.Errorf("%v: the next call fails fast: %v", tt.deadline, failsFast)
			}
		})
	}
}

func TestACallerThatHasGoneIsNotServed(t *testing.T) {
	g, f := with(t, client.Options{}, throttled)
	_, _ = g.Status(t.Context(), "create_post", client.Request{UserID: "u1"}) // the next call fails fast
	asked := len(f.events)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := g.Check(ctx, "create_post", client.Request{UserID: "u1"}); !errors.Is(err, context.Canceled) || d.Allowed || len(f.events) != asked {
		t.Errorf("%+v, %v", d, err)
	}
}
