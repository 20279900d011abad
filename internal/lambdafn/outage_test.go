package lambdafn_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "posts-guard")
	inOneMinute(t, 20*time.Second)
	for n := range 6 {
		r.proxy.Fail(n, dynamotest.LoseResponse, "UpdateItem")
		a, errorType := ask(t, i, event("create_post"))
		if a.Reason != "ok" || a.ActivityCount != int64(n+1) || a.At == 0 {
			t.Errorf("answer lost %d times: %+v %s, want ok and %d counted", n, a, errorType, n+1)
		}
	}
}

// slack is what a busy machine may add to a timeout. The limiter's own tests
// use synctest and are exact.
const slack = 5 * time.Second

// The table refuses connections or never answers. One instance then decides
// from its memory, and never admits more than the limit.
func TestOutage(t *testing.T) {
	for _, fault := range []dynamotest.Fault{dynamotest.Refuse, dynamotest.HangBefore, dynamotest.HangAfter} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			const timeout = 5 * time.Second // a cold instance of a busy machine answers in this time
			r := newRig(t)
			i := r.start(t, "posts-guard", "DECISION_TIMEOUT="+timeout.String())
			ask(t, i, event("update_post")) // opens the connection
			inOneMinute(t, 20*time.Second)
			for range 4 {
				if a, _ := ask(t, i, event("create_post")); a.Reason != "ok" {
					t.Fatalf("%+v", a)
				}
			}
			r.proxy.Fail(math.MaxInt, fault)
			allowed := 4
			for range 8 {
				began := time.Now()
				a, errorType := ask(t, i, event("create_post"))
				if took := time.Since(began); took > timeout+slack {
					t.Errorf("the answer came after %v, want it before the timeout", took)
				}
				if a.Reason != "unavailable" {
					t.Errorf("%+v %s, want unavailable", a, errorType)
				}
				if a.Allowed {
					allowed++
				}
			}
			if allowed != 10 {
				t.Errorf("%d allowed before and in the outage, want 10", allowed)
			}
		})
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "posts-guard")
	inOneMinute(t, 20*time.Second)
	a, _ := ask(t, i, event("create_post"))
	back := fmt.Sprintf(`{"userId": %q, "activity": "create_post", "op": "release", "at": %d, "requestId": %q}`, canary, a.At, a.RequestID)
	if other, _ := ask(t, i, event("create_post")); other.ActivityCount != 2 {
		t.Errorf("%+v", other)
	}
	for range 2 {
		if a, _ := ask(t, i, back); !a.Allowed || a.Reason != "ok" || a.ActivityCount != 1 {
			t.Errorf("release: %+v, want the other one left", a)
		}
	}
	again := fmt.Sprintf(`{"userId": %q, "activity": "create_post", "requestId": %q}`, canary, a.RequestID)
	for _, reason := range []string{"ok", "duplicate"} {
		if a, _ := ask(t, i, again); a.Reason != reason || a.ActivityCount != 2 {
			t.Errorf("the released id again: %+v, want %s", a, reason)
		}
	}
}
