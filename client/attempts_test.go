package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/client"
)

var throttled = byLambda(429, "TooManyRequestsException", "Rate Exceeded.")

func TestRepeatsHaveTheSameRequestID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := with(t, client.Options{}, throttled, throttled, body(okBody))
		for range 2 {
			if d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1", Count: 2}); err != nil || !d.Allowed || d.Outage != nil {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		if len(f.events) != 4 || f.events[0] != f.events[1] || f.events[0] != f.events[2] || f.events[0].RequestID == "" || f.events[0].RequestID == f.events[3].RequestID {
			t.Errorf("%+v, want one id for the first three and another one for the next call", f.events)
		}
		if f.events[0].UserID != "u1" || f.events[0].Activity != "create_post" || f.events[0].Op != "check" || f.events[0].Count != 2 {
			t.Errorf("%+v", f.events[0])
		}
	})
}

func TestAPartialCheckIsSentOnceWithoutAnID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := with(t, client.Options{}, throttled)
		d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1", Count: 12, Partial: true})
		if err != nil || d.Outage == nil || !d.Allowed || d.Granted != 12 || len(f.events) != 1 || f.events[0].RequestID != "" {
			t.Errorf("%+v, %v, %+v", d, err, f.events)
		}
	})
}

func TestTimeIsSharedByTheAttempts(t *testing.T) {
	for name, tt := range map[string]struct {
		options client.Options
		replies []reply
		want    []time.Duration // how long each attempt lasts, the last one at least
		all     time.Duration   // at most
	}{
		"default":            {client.Options{}, []reply{silent}, []time.Duration{1300 * time.Millisecond, 1600 * time.Millisecond}, 3 * time.Second},
		"one attempt":        {client.Options{Attempts: 1}, []reply{silent}, []time.Duration{3 * time.Second}, 3 * time.Second},
		"no time for two":    {client.Options{Timeout: 2500 * time.Millisecond}, []reply{silent}, []time.Duration{2500 * time.Millisecond}, 2500 * time.Millisecond},
		"short decisions":    {client.Options{DecisionTimeout: 200 * time.Millisecond, Timeout: 5 * time.Second}, []reply{silent}, []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, 3500 * time.Millisecond}, 5 * time.Second},
		"throttled at first": {client.Options{}, []reply{throttled, silent}, []time.Duration{0, 1300 * time.Millisecond, 1400 * time.Millisecond}, 3 * time.Second},
		"cold start":         {client.Options{}, []reply{silent, slow(1400 * time.Millisecond)}, []time.Duration{1300 * time.Millisecond, 1400 * time.Millisecond}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, f := with(t, tt.options, tt.replies...)
				began := time.Now()
				_, _ = g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
				took := time.Since(began)
				if len(f.lasted) != len(tt.want) || took > tt.all {
					t.Fatalf("attempts of %v in %v, want %v in at most %v", f.lasted, took, tt.want, tt.all)
				}
				for i, want := range tt.want {
					if got := f.lasted[i]; got != want && (i < len(tt.want)-1 || got < want-150*time.Millisecond) {
						t.Errorf("attempt %d lasted %v, want %v", i+1, got, want)
					}
				}
			})
		})
	}
}

// The call has time for two attempts, or for one and a pause that is too long.
func TestTheLastAttemptGetsAllTheTimeThatIsLeft(t *testing.T) {
	const timeout = 2620 * time.Millisecond // two attempts and 20 ms; the pause takes up to 50 ms
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			g, f := with(t, client.Options{Timeout: timeout}, silent)
			_, _ = g.Status(t.Context(), "create_post", client.Request{UserID: "u1"})
			if len(f.lasted) == 1 && f.lasted[0] != timeout {
				t.Errorf("the only attempt lasted %v, want %v", f.lasted[0], timeout)
			}
		})
	}
}

// The pauses are random: up to 50 ms after the first attempt, then 100 ms and 200 ms.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		longest := make([]time.Duration, 3)
		for range 300 {
			g, f := with(t, client.Options{Attempts: 4}, throttled)
			_, _ = g.Status(t.Context(), "create_post", client.Request{UserID: "u1"})
			for i := range longest {
				longest[i] = max(longest[i], f.began[i+1].Sub(f.began[i]))
			}
		}
		for i, most := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
			if longest[i] > most || longest[i] < most*9/10 {
				t.Errorf("pause %d takes up to %v, want %v", i+1, longest[i], most)
			}
		}
	})
}

func TestTheCallersContextEndsACall(t *testing.T) {
	for _, reply := range []reply{silent, throttled} {
		synctest.Test(t, func(t *testing.T) {
			g, f := with(t, client.Options{}, reply)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			time.Sleep(time.Millisecond)
			d, err := g.Check(ctx, "create_post", client.Request{UserID: "u1"})
			if !errors.Is(err, context.DeadlineExceeded) || kindOf(err) != nil || d.Allowed {
				t.Errorf("%+v, %v, want the context's error", d, err)
			}
			asked := len(f.events)
			_, _ = g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
			if len(f.events) == asked {
				t.Error("the guard is not asked after a caller gave up")
			}
		})
	}
}

func TestAfterAnOutageCallsFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warnings []error
		g, f := with(t, client.Options{Attempts: 1, Warn: func(err error) { warnings = append(warnings, err) }}, throttled)
		check := func(want string) {
			t.Helper()
			d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
			if err != nil || !d.Allowed || d.Reason != client.Unavailable || d.Outage.Error() != want {
				t.Errorf("%+v, %v, want the outage %s", d, err, want)
			}
		}
		const now, before = "posts-guard did not answer: TooManyRequestsException: Rate Exceeded.", "posts-guard did not answer a moment ago"
		check(now)
		check(before)
		if _, err := g.Status(t.Context(), "like", client.Request{UserID: "u2"}); !errors.Is(err, client.ErrOutage) || err.Error() != before {
			t.Errorf("status: %v", err)
		}
		if _, err := g.Status(t.Context(), "pin", client.Request{UserID: "u2"}); err == nil || err.Error() == before {
			t.Errorf("another guard: %v, want it asked", err)
		}
		time.Sleep(999 * time.Millisecond)
		check(before)
		time.Sleep(time.Millisecond)
		check(now)
		check(before)
		f.replies = []reply{body(okBody)}
		time.Sleep(time.Second)
		for range 3 {
			if d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil || d.Outage != nil {
				t.Errorf("%+v, %v", d, err)
			}
		}
		if len(f.events) != 6 || len(warnings) != 2 {
			t.Errorf("%d requests and %d warnings, want 6 and 2: %v", len(f.events), len(warnings), warnings)
		}
	})
}

// Perhaps only one user's key is throttled. With ON_OUTAGE=deny, that must not
// let everybody else through.
func TestAGuardsOwnOutageIsForOneCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := functionError("Unavailable", "the table is throttled")
		g, f := with(t, client.Options{Attempts: 1}, own, body(okBody), throttled, own, body(okBody))
		for i, want := range []string{"posts-guard did not answer: the table is throttled", "", "posts-guard did not answer: TooManyRequestsException: Rate Exceeded.", "posts-guard did not answer: the table is throttled", ""} {
			d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
			if err != nil || !d.Allowed || want == "" && d.Outage != nil || want != "" && d.Outage.Error() != want {
				t.Errorf("call %d: %+v, %v, want the outage %q", i+1, d, err, want)
			}
			if strings.Contains(want, "TooMany") {
				time.Sleep(time.Second) // the next call is the probe
			}
		}
		if len(f.events) != 5 {
			t.Errorf("%d requests, want 5", len(f.events))
		}
	})
}

func TestAResetIsSentOnce(t *testing.T) {
	for op, asked := range map[string]int{"reset": 1, "release": 3, "status": 3} {
		synctest.Test(t, func(t *testing.T) {
			g, f := with(t, client.Options{}, throttled)
			verb := map[string]func(context.Context, string, client.Request) (client.Decision, error){"reset": g.Reset, "release": g.Release, "status": g.Status}[op]
			if _, err := verb(t.Context(), "create_post", client.Request{UserID: "u1"}); !errors.Is(err, client.ErrOutage) || len(f.events) != asked {
				t.Errorf("%s: %v after %d requests, want %d", op, err, len(f.events), asked)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g, f := with(t, client.Options{}, silent)
		if _, err := g.Reset(t.Context(), "create_post", client.Request{UserID: "u1"}); !errors.Is(err, client.ErrOutage) || f.lasted[0] != 3*time.Second {
			t.Errorf("%v after %v, want all of the 3 s", err, f.lasted)
		}
	})
}

func TestOneCallProbesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := with(t, client.Options{}, throttled, throttled, throttled, slow(1200*time.Millisecond))
		_, _ = g.Status(t.Context(), "create_post", client.Request{UserID: "u1"})
		time.Sleep(time.Second)
		ask := func(callers int) (answered int) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					if _, err := g.Status(t.Context(), "create_post", client.Request{UserID: "u1"}); err == nil {
						mu.Lock()
						answered++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			return answered
		}
		if answered := ask(5); answered != 1 || len(f.events) != 4 {
			t.Errorf("%d of 5 calls were answered, %d requests, want one probe", answered, len(f.events)-3)
		}
		if answered := ask(5); answered != 5 {
			t.Errorf("%d of 5 calls were answered after the probe", answered)
		}
	})
}

func TestAProbeThatItsCallerGivesUpIsRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := with(t, client.Options{Attempts: 1}, throttled, silent, body(okBody))
		_, _ = g.Status(t.Context(), "create_post", client.Request{UserID: "u1"})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := g.Status(ctx, "create_post", client.Request{UserID: "u1"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := g.Status(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil {
			t.Error(err)
		}
	})
}
