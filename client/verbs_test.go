package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

var errSave = errors.New("the database is full")

func TestGuardedGivesBackWhatAFailedSaveCounted(t *testing.T) {
	without := func(text string) reply { return body(strings.Replace(okBody, text, "", 1)) }
	for name, tt := range map[string]struct {
		reply    reply
		fails    bool
		released bool
	}{
		"saved":             {body(okBody), false, false},
		"failed":            {body(okBody), true, true},
		"no receipt":        {without(`,"at":1700000000000`), true, false},
		"no id":             {without(`,"requestId":"r1"`), true, false},
		"nothing granted":   {without(`,"granted":2`), true, false},
		"without a guard":   {functionError("Unavailable", "m"), true, false},
		"guard is in doubt": {body(strings.Replace(okBody, `"ok"`, `"unavailable"`, 1)), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := with(t, client.Options{}, tt.reply)
			saves := 0
			err := g.Guarded(t.Context(), "create_post", client.Request{UserID: "u1", Count: 2}, func(client.Decision) error {
				saves++
				if tt.fails {
					return errSave
				}
				return nil
			})
			if tt.fails && !errors.Is(err, errSave) || !tt.fails && err != nil || saves != 1 {
				t.Errorf("%v after %d saves", err, saves)
			}
			if !tt.released && len(f.events) != 1 || tt.released && len(f.events) != 2 {
				t.Fatalf("%+v, want a release: %v", f.events, tt.released)
			}
			if want := (event{"u1", "create_post", "release", "r1", 2, 1700000000000}); tt.released && f.events[1] != want {
				t.Errorf("%+v, want %+v", f.events[1], want)
			}
		})
	}
}

func TestGuardedRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		options client.Options
		reply   reply
		kind    error
		message string
		reason  client.Reason
	}{
		"limited":           {client.Options{}, body(limitedBody), client.ErrLimited, "Rate limit exceeded", client.Limited},
		"limited, an error": {client.Options{}, functionError("RateLimitExceeded", "Rate limit exceeded"), client.ErrLimited, "Rate limit exceeded", client.Limited},
		"outage":            {client.Options{OnOutage: client.Deny}, functionError("Unavailable", "m"), client.ErrLimited, "Please try again later.", client.Unavailable},
		"mistake":           {client.Options{}, byLambda(403, "AccessDeniedException", ""), client.ErrConfiguration, "The app may not invoke", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Prefix = "dev-"
			g, _ := with(t, tt.options, tt.reply)
			err := g.Guarded(t.Context(), "create_post", u1, func(client.Decision) error {
				t.Error("saved")
				return nil
			})
			failure, ok := errors.AsType[*client.Error](err)
			if !ok || !errors.Is(failure.Kind, tt.kind) || failure.Guard != "dev-posts-guard" || !strings.HasPrefix(err.Error(), tt.message) {
				t.Fatalf("%v, want %v: %s", err, tt.kind, tt.message)
			}
			if outage := tt.reason == client.Unavailable; errors.Is(err, client.ErrOutage) != outage {
				t.Errorf("%v has the cause %v", err, failure.Cause)
			}
			if tt.reason != "" && (failure.Decision == nil || failure.Decision.Reason != tt.reason || failure.Decision.Allowed || failure.Decision.UserID != "u1") {
				t.Errorf("%+v", failure.Decision)
			}
		})
	}
}

func TestAReleaseThatFailsIsAWarning(t *testing.T) {
	var warned []string
	g, f := with(t, client.Options{Warn: func(err error) { warned = append(warned, err.Error()) }}, body(okBody), functionError("Unavailable", "m"))
	func() {
		defer func() {
			if recover() != "save panics" {
				t.Error("the panic of save is lost")
			}
		}()
		_ = g.Guarded(t.Context(), "photos-guard/upload_photo", u1, func(client.Decision) error { panic("save panics") })
	}()
	if !slices.Equal(warned, []string{"photos-guard did not answer: m"}) || len(f.events) != 2 {
		t.Errorf("warned of %q after %+v", warned, f.events)
	}
}

// An outage that OnOutage decided is a warning once a second. It holds back no
// warning of a release.
func TestEachReleaseThatFailsIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warnings := 0
		away := functionError("Unavailable", "m")
		g, f := with(t, client.Options{Warn: func(error) { warnings++ }}, away, away, body(okBody), away, body(okBody), away, away)
		save := func(client.Decision) error { return errSave }
		for i, want := range []int{1, 1, 2, 3, 3} { // two outages, two releases, an outage
			if err := g.Guarded(t.Context(), "create_post", u1, save); !errors.Is(err, errSave) || warnings != want {
				t.Errorf("call %d: %v and %d warnings, want %d", i+1, err, warnings, want)
			}
		}
		if len(f.events) != 7 {
			t.Errorf("%d requests, want 7", len(f.events))
		}
	})
}

func TestAReleaseIsSentAlthoughItsCallerHasGone(t *testing.T) {
	g, f := with(t, client.Options{}, body(okBody))
	ctx, cancel := context.WithCancel(t.Context())
	err := g.Guarded(ctx, "create_post", u1, func(client.Decision) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || len(f.events) != 2 || f.events[1].Op != "release" {
		t.Errorf("%v, %+v, want a release", err, f.events)
	}
}

// An app can store a decision and release it later.
func TestADecisionFromJSONIsReleasedByItsOwnGuard(t *testing.T) {
	for name, guard := range map[string]string{"photos-guard/upload_photo": "dev-photos-guard", "photos-guard/create_post": "dev-photos-guard", "create_post": "dev-posts-guard"} {
		_, own, ok := strings.Cut(name, "/")
		if !ok {
			own = name
		}
		var functions []string
		g := open(t, client.Options{Activities: activities, Prefix: "dev-", Client: fake(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
			functions = append(functions, *in.FunctionName)
			return body(strings.Replace(okBody, "create_post", own, 1))(ctx)
		})})
		d := testkit.Must(g.Check(t.Context(), name, u1))(t)
		text := testkit.Must(json.Marshal(d))(t)
		var stored client.Decision
		testkit.OK(t, json.Unmarshal(text, &stored))
		if _, err := g.ReleaseDecision(t.Context(), stored); err != nil || !slices.Equal(functions, []string{guard, guard}) {
			t.Errorf("%s: %v, asked %q", name, err, functions)
		}
		stored.Granted = 0
		_, err := g.ReleaseDecision(t.Context(), stored)
		if failure, ok := errors.AsType[*client.Error](err); !ok || !errors.Is(err, client.ErrValidation) || failure.Guard != guard || len(functions) != 2 {
			t.Errorf("%s, nothing granted: %+v", name, err)
		}
	}
}

func TestReadyAsksEachGuardOnce(t *testing.T) {
	g, f := with(t, client.Options{}, body(okBody))
	if err := g.Ready(t.Context(), "like", "create_post", "photos-guard/upload_photo"); err != nil || len(f.events) != 2 || f.events[0].UserID != "ready" || f.events[0].Op != "status" {
		t.Errorf("%v after %+v, want a status of each of two guards", err, f.events)
	}
	if err := g.Ready(t.Context()); err != nil || len(f.events) != 2+6 {
		t.Errorf("%v after %+v, want a status of each guard of the list", err, f.events[2:])
	}
	g, _ = with(t, client.Options{}, functionError("Unavailable", "m"))
	if err := g.Ready(t.Context(), "like", "create_post"); !errors.Is(err, client.ErrOutage) || err.Error() != "posts-guard did not answer: m" {
		t.Error(err)
	}
	if err := g.Ready(t.Context(), "pin", "ingest"); !errors.Is(err, client.ErrOutage) || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%v, want both errors", err)
	}
}

func TestWait(t *testing.T) {
	for name, tt := range map[string]struct {
		allowed    bool
		reason     client.Reason
		wait, most time.Duration
		want       bool
		least, all time.Duration
	}{
		"no wait":       {false, "", 0, 0, false, 0, 0},
		"allowed":       {true, "", 0, 0, true, 0, 0},
		"partial":       {true, "", 100 * time.Millisecond, 0, true, 100 * time.Millisecond, 150 * time.Millisecond},
		"short":         {false, "", 100 * time.Millisecond, 0, true, 100 * time.Millisecond, 150 * time.Millisecond},
		"long":          {false, "", 50 * time.Second, 0, true, 50 * time.Second, 55 * time.Second},
		"too long":      {false, "", 61 * time.Second, 0, false, 0, 0},
		"the longest":   {false, "", time.Minute, 0, true, time.Minute, 66 * time.Second},
		"the app's own": {false, "", 2 * time.Second, time.Second, false, 0, 0},
		"shadow":        {true, client.Shadow, 10 * time.Second, 0, true, 0, 0}, // an allowed request has the wait of a refused one
		"long shadow":   {true, client.Shadow, 61 * time.Second, 0, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				d := client.Decision{Decision: guards.Decision{Allowed: tt.allowed, Reason: tt.reason, WaitTime: tt.wait.Milliseconds()}}
				got := d.Wait(t.Context(), tt.most)
				if took := time.Since(began); got != tt.want || took < tt.least || took > tt.all {
					t.Errorf("%v after %v, want %v after %v to %v", got, took, tt.want, tt.least, tt.all)
				}
			})
		})
	}
}

// Nobody waits for the end of a block, and a block stays as it is if an app stores it.
func TestABlockIsNotWaitedFor(t *testing.T) {
	const answer = `{"allowed":false,"reason":"blocked","userId":"u1","activity":"create_post","op":"check","waitTime":5,"resetAt":1700006400000,"granted":0,"message":"m"}`
	var d client.Decision
	testkit.OK(t, json.Unmarshal([]byte(answer), &d))
	if d.Reason != client.Blocked || d.Wait(t.Context(), 0) || d.ResetAt != 1700006400000 {
		t.Errorf("%+v, want one that can't be waited for", d)
	}
	if again, err := json.Marshal(d); err != nil || string(again) != answer {
		t.Errorf("%s, %v, want %s", again, err, answer)
	}
}

// Many callers that wait for the same moment don't come back together.
func TestWaitsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for wait, spread := range map[time.Duration]time.Duration{100 * time.Millisecond: 50 * time.Millisecond, 50 * time.Second: 5 * time.Second} {
			var longest time.Duration
			for range 300 {
				began := time.Now()
				client.Decision{Decision: guards.Decision{WaitTime: wait.Milliseconds()}}.Wait(t.Context(), 0)
				longest = max(longest, time.Since(began)-wait)
			}
			if longest > spread || longest < spread*9/10 {
				t.Errorf("waits of %v take up to %v more, want %v", wait, longest, spread)
			}
		}
	})
}

func TestTheCallersContextEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if (client.Decision{Decision: guards.Decision{WaitTime: 50_000}}).Wait(ctx, 0) || time.Since(began) != time.Second {
			t.Errorf("it waited, for %v", time.Since(began))
		}
	})
}
