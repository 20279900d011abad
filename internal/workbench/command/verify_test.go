package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	app "github.com/cric-talk/guards/limits"
)

// The command uses the SDK's client, as applications do: at the address of a flag, or where the SDK's
// own settings lead. A guard with ON_LIMIT=error refuses with an error, which has no figures. An
// outage of a guard's table is no verdict.
func TestVerifyAsksAFunction(t *testing.T) {
	credentials(t)
	const exactly = "create_room: 10 of 26 allowed, exactly the limit"
	for _, tt := range []struct {
		variable, serve, flags string // HERE is the address of guards serve
		status                 int
		prints                 string
	}{
		{"", "", "--lambda-endpoint HERE", done, exactly},
		{"", "", "--lambda-endpoint HERE --function pots-guard", unreachable, "guards: there is no function pots-guard at HERE\nguards: name the deployed guard with --function\n"},
		{"AWS_ENDPOINT_URL_LAMBDA=HERE", "", "--invoke --function rooms-guard", done, exactly},
		{"AWS_ENDPOINT_URL_LAMBDA=HERE", "", "--invoke --function dev-rooms-guard", unreachable, "guards: there is no function dev-rooms-guard in us-east-1\n"},
		{"ON_LIMIT=error", "", "--lambda-endpoint HERE", done, exactly},
		{"ON_OUTAGE=deny", "--fail unavailable", "--lambda-endpoint HERE", unreachable, "guards: rooms-guard failed: "},
	} {
		t.Run(tt.variable+" "+tt.flags, func(t *testing.T) {
			name, value, set := strings.Cut(tt.variable, "=")
			if set {
				t.Setenv(name, value)
			}
			endpoint, _ := serve(t, strings.Fields(tt.serve)...)
			if value == "HERE" {
				t.Setenv(name, endpoint)
			}
			line := "verify create_room --region us-east-1 --callers 16 " + strings.ReplaceAll(tt.flags, "HERE", endpoint)
			status, out, log := command(t, app.All, line)
			if want := strings.ReplaceAll(tt.prints, "HERE", endpoint); status != tt.status || !strings.HasPrefix(out+log, want) {
				t.Errorf("status %d: %s%s, want %d: %s", status, out, log, tt.status, want)
			}
			if tt.status == done { // the command has removed its user
				post(t, invocations(endpoint, "cleanup"), `{"dryRun": true}`).Wants(t, 200, `"scanned":0`)
			}
		})
	}
}

// A function that crashes or times out has given no answer. Only bad input is
// the caller's mistake.
func TestVerifyOfAFunctionThatFails(t *testing.T) {
	credentials(t)
	for _, tt := range []struct {
		failure string // what Lambda sends as the payload
		status  int
		prints  string
	}{
		{`{"errorMessage":"RequestId: 1 Error: Runtime exited","errorType":"Runtime.ExitError"}`, unreachable, "guards: posts-guard failed: RequestId: 1 Error: Runtime exited\n"},
		{`{"errorMessage":"RequestId: 1 Error: Task timed out after 10.00 seconds","errorType":"Sandbox.Timedout"}`, unreachable, "guards: posts-guard failed: RequestId: 1 Error: Task timed out after 10.00 seconds\n"},
		{"killed", unreachable, "guards: posts-guard failed: killed\n"},
		{`{"errorMessage":"activity is \"x\"","errorType":"ValidationError"}`, wrongUse, "guards: posts-guard failed: activity is \"x\"\n"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			_, _ = io.WriteString(w, tt.failure)
		}))
		if status, out, log := command(t, app.All, "verify create_post --region us-east-1 --lambda-endpoint "+server.URL); status != tt.status || out+log != tt.prints {
			t.Errorf("%s: status %d: %s%s, want %d: %s", tt.failure, status, out, log, tt.status, tt.prints)
		}
		server.Close()
	}
}

// letting returns a guard that lets this many checks through and counts them, and some more.
func letting(limit, through, more int64) asker {
	var checks atomic.Int64
	return func(_ context.Context, r guard.Request) (guards.Decision, error) {
		got := guards.Decision{Reason: "ok", Limit: limit}
		if r.Op == guards.Check {
			got.Allowed = checks.Add(1) <= through
		}
		if n := min(checks.Load(), through); n > 0 {
			got.ActivityCount = n + more
		}
		got.Remaining = max(0, limit-got.ActivityCount)
		return got, nil
	}
}

// one is an activity alone.
func one(limit string) []limits.Activity {
	return []limits.Activity{{Name: "create_post", Limit: policy.Must(limit)}}
}

// A clean-up that fails does not change the verdict, which names what is wrong.
func TestVerifyPrintsTheVerdictIfItsUserStays(t *testing.T) {
	for _, tt := range []struct {
		through, more int64
		want          int
		verdict       string
	}{
		{9, 0, refused, "not the limit of 10"},
		{10, 0, unreachable, "exactly the limit"},
		{11, 0, refused, "not the limit of 10"},
		{10, -1, refused, "but the user's item counts 9 of create_post"},
		{10, 1, refused, "but the user's item counts 11 of create_post"},
	} {
		guarded := letting(10, tt.through, tt.more)
		ask := func(ctx context.Context, r guard.Request) (guards.Decision, error) {
			if r.Op == guards.Reset {
				return guards.Decision{}, &input.Unavailable{What: "the table could not be reached"}
			}
			return guarded(ctx, r)
		}
		var out, log stream
		env := session{page: app.All, out: &out, err: &log, now: atPinned}
		c := verifyCommand{Callers: 5}
		v, err := c.race(t.Context(), env, ask, one("10/1m"))
		if err == nil {
			err = v.print(env, false)
		}
		status := env.fail(err)
		if status != tt.want || !strings.HasPrefix(out.String(), fmt.Sprintf("create_post: %d of 15 allowed, %s, in ", tt.through, tt.verdict)) ||
			!strings.HasPrefix(log.String(), "guards: the counts of the test could not be removed; they expire by themselves\n") {
			t.Errorf("%+v: status %d: %s%s", tt, status, &out, &log)
		}
	}
}

// If the race fails or Ctrl-C ends it, the command still reports a clean-up that
// fails. The clean-up waits for an answer for a limited time.
func TestVerifyReportsThatItsUserStaysAfterAFailure(t *testing.T) {
	lost := &input.Unavailable{What: "the guard did not answer"}
	for name, stop := range map[string]bool{"failure": false, "Ctrl-C": true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ask := func(ctx context.Context, r guard.Request) (guards.Decision, error) {
				if r.Op == guards.Status {
					return guards.Decision{Allowed: true, Limit: 10}, nil
				}
				if r.Op == guards.Reset {
					<-ctx.Done()
					return guards.Decision{}, ctx.Err()
				}
				if stop {
					interrupt()
				}
				return guards.Decision{}, lost
			}
			var log stream
			c := verifyCommand{Callers: 5}
			began := time.Now()
			_, err := c.race(ctx, session{page: app.All, err: &log, now: atPinned}, ask, one("10/1m"))
			if !errors.Is(err, lost) || time.Since(began) != patience || !strings.HasSuffix(log.String(), "guards: the counts of the test could not be removed; they expire by themselves\n") {
				t.Errorf("after a %s: %v after %v: %s", name, err, time.Since(began), &log)
			}
		})
	}
}

// verify compares with the limit in force, which the guard's answers have.
func TestVerifyComparesWithALiveLimit(t *testing.T) {
	for _, tt := range []struct {
		first, then int64 // the limit in the first answer and in the others
		want        error
	}{
		{20, 20, nil},
		{10, 20, errLimitChanged}, // the first instance does not follow the live limit yet
		{0, 20, errors.New("create_post is not limited now: the guard answers unlimited")},
	} {
		guarded, asks := letting(tt.then, tt.then, 0), atomic.Int64{}
		ask := func(ctx context.Context, r guard.Request) (guards.Decision, error) {
			if asks.Add(1) == 1 {
				return guards.Decision{Allowed: true, Reason: "unlimited", Limit: tt.first}, nil
			}
			return guarded(ctx, r)
		}
		c := verifyCommand{Callers: 5}
		v, err := c.race(t.Context(), session{now: atPinned}, ask, one("10/1m"))
		if fmt.Sprint(err) != fmt.Sprint(tt.want) || err == nil && (!v.Exact || v.Limit != 20 || v.Asked != 25) {
			t.Errorf("limit %d, then %d: %+v, %v, want %v", tt.first, tt.then, v, err, tt.want)
		}
	}
}

// Near the end of a window, the callers wait for the next one, which leaves
// enough time for all of them.
func TestVerifyWaitsForAWholeWindow(t *testing.T) {
	for since, message := range map[time.Duration]string{
		0: "", 50 * time.Second: "",
		51 * time.Second:                      "guards: waiting 9 s for the next window\n",
		59*time.Second + 500*time.Millisecond: "guards: waiting 500 ms for the next window\n",
	} {
		synctest.Test(t, func(t *testing.T) { // the clock in here starts with a minute
			time.Sleep(since)
			if status, _, log := (session{page: app.All}).does(t, "verify", "create_post"); status != done || log != message {
				t.Errorf("%v into a minute: status %d, %q, want %q", since, status, log, message)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(55 * time.Second)
		ctx, interrupt := context.WithTimeout(t.Context(), time.Second)
		defer interrupt()
		if status := run(ctx, []string{"verify", "create_post"}, session{page: app.All, out: io.Discard, err: io.Discard}); status != interrupted {
			t.Errorf("interrupted while it waits: status %d", status)
		}
	})
}

// In two windows twice the limit gets through, so verify must not compare that
// with the limit.
func TestVerifyNeedsOneWindow(t *testing.T) {
	for _, end := range []int64{30, 61} { // the window ends during the checks, or before the last status
		guarded, asks := letting(10, 10, 0), atomic.Int64{}
		slow := func(ctx context.Context, r guard.Request) (guards.Decision, error) {
			got, err := guarded(ctx, r)
			got.WindowKey = asks.Add(1) / end
			return got, err
		}
		c := verifyCommand{Callers: 50}
		if v, err := c.race(t.Context(), session{now: atPinned}, slow, one("10/1m")); !errors.Is(err, errWindowEnded) {
			t.Errorf("the window ends after %d requests: %+v, %v", end, v, err)
		}
	}
}

// Of a prepaid limit, at most the limit may get through: the rest can be in leases. But the first
// 100 are counted one by one.
func TestVerifyOfAPrepaidLimit(t *testing.T) {
	for allowed, want := range map[int64]bool{0: false, 99: false, 100: true, 199: true, 200: true, 201: false} {
		c, all := verifyCommand{Callers: 5}, one("200/1m prepaid")
		v, err := c.race(t.Context(), session{guards: limits.Guards{{Activities: all}}, now: atPinned}, letting(200, allowed, 0), all)
		if err != nil || !v.Prepaid || v.Exact != want {
			t.Errorf("%d allowed: %+v, %v, want exact: %v", allowed, v, err, want)
		}
		var out stream
		words := map[bool]string{true: ", at most the limit of 200, as a prepaid one promises, in ", false: ", not the limit of 200, in "}[want]
		if err := v.print(session{out: &out}, false); errors.Is(err, errRefused) == want || !strings.Contains(out.String(), words) {
			t.Errorf("%d allowed: %v, %s, want %q", allowed, err, &out, words)
		}
	}
}
