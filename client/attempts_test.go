package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
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

func TestTimeIsSharedByTheAttempts(t *testing.T) {
	for name, tt := range map[string]struct {
		options client.Options
		replies []reply
		want    []time.Duration // how long each attempt lasts, the last one at least
		all     time.Duration   // at most
	}{
		"default":            {client.Options{}, []reply{silent}, []time.Duration{1300 * time.Millisecond, 1600 * time.Millisecond}, 3 * time.Second},
		"one attempt":        {client.Options{MaxTries: 1}, []reply{silent}, []time.Duration{3 * time.Second}, 3 * time.Second},
		"no time for two":    {client.Options{Timeout: 2500 * time.Millisecond}, []reply{silent}, []time.Duration{2500 * time.Millisecond}, 2500 * time.Millisecond},
		"short decisions":    {client.Options{DecisionTimeout: 200 * time.Millisecond, Timeout: 5 * time.Second}, []reply{silent}, []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, 3500 * time.Millisecond}, 5 * time.Second},
		"throttled at first": {client.Options{}, []reply{throttled, silent}, []time.Duration{0, 1300 * time.Millisecond, 1400 * time.Millisecond}, 3 * time.Second},
		"cold start":         {client.Options{}, []reply{silent, slow(1400 * time.Millisecond)}, []time.Duration{1300 * time.Millisecond, 1400 * time.Millisecond}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, f := with(t, tt.options, tt.replies...)
				began := time.Now()
				_, _ = g.Check(t.Context(), "create_post", u1)
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
			_, _ = g.Status(t.Context(), "create_post", u1)
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
			g, f := with(t, client.Options{MaxTries: 4}, throttled)
			_, _ = g.Status(t.Context(), "create_post", u1)
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

// OnOutage decides while calls fail fast, with one warning. Other guards are asked.
func TestAfterAnOutageCallsFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warnings := 0
		g, f := with(t, client.Options{MaxTries: 1, Warn: func(error) { warnings++ }}, throttled)
		for range 3 {
			if d, err := g.Check(t.Context(), "create_post", u1); err != nil || !d.Allowed || d.Reason != client.Unavailable || d.Outage == nil {
				t.Errorf("%+v, %v, want an outage that lets the check through", d, err)
			}
		}
		if _, err := g.Status(t.Context(), "pin", client.Request{UserID: "u2"}); err == nil || len(f.events) != 2 || warnings != 1 {
			t.Errorf("another guard: %v, after %d requests and %d warnings, want 2 and 1", err, len(f.events), warnings)
		}
	})
}

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
			d, err := g.Check(ctx, "create_post", u1)
			if took := time.Since(began); took != tt.takes {
				t.Errorf("%v: took %v, want %v", tt.deadline, took, tt.takes)
			}
			if tt.outage && (err != nil || d.Allowed || d.Outage == nil) || !tt.outage && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %+v, %v, want an outage: %v", tt.deadline, d, err, tt.outage)
			}
			asked := len(f.events)
			_, _ = g.Status(t.Context(), "create_post", u1)
			if failsFast := len(f.events) == asked; failsFast != tt.outage {
				t.Errorf("%v: the next call fails fast: %v", tt.deadline, failsFast)
			}
		})
	}
}

func TestACallerThatHasGoneIsNotServed(t *testing.T) {
	g, f := with(t, client.Options{}, throttled)
	_, _ = g.Status(t.Context(), "create_post", u1) // the next call fails fast
	asked := len(f.events)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := g.Check(ctx, "create_post", u1); !errors.Is(err, context.Canceled) || d.Allowed || len(f.events) != asked {
		t.Errorf("%+v, %v", d, err)
	}
}

// The SDK sends each attempt once. A connection that breaks in the middle of an
// answer is an outage.
func TestAttemptsByTheSDK(t *testing.T) {
	for name, tt := range map[string]struct {
		reply   http.HandlerFunc
		message string
	}{
		"an error of Lambda": {respond(http.StatusInternalServerError, "ServiceException", "{}"), "posts-guard did not answer: ServiceException"},
		"half of an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"allowed":`))
		}, "posts-guard did not answer: the answer broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				tt.reply(w, r)
			})
			g := open(t, client.Options{
				Activities: activities, Client: sdk(server.URL, nil),
				MaxTries: 2, Timeout: 20 * time.Second, DecisionTimeout: 5 * time.Second,
			})
			_, err := g.Status(t.Context(), "create_post", u1)
			if !errors.Is(err, client.ErrOutage) || !strings.HasPrefix(err.Error(), tt.message) || requests.Load() != 2 {
				t.Errorf("%v after %d requests, want %s after 2", err, requests.Load(), tt.message)
			}
		})
	}
}

// What a call of a timeline comes to.
const (
	answered = "answered"
	lost     = "lost"     // after 3 s without an answer
	paused   = "not sent" // because of another call
	givenUp  = "given up" // by its caller
)

// A timed call begins at a time. The function is silent if the call comes to lost
// or givenUp, and otherwise answers at once.
type timed struct {
	at   time.Duration
	want string
	ends time.Duration // when a caller gives up
}

// Calls of one function overlap.
func TestTheBreaker(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for name, calls := range map[string][]timed{
		"a lost call opens it for a second":                    {{0, lost, 0}, {3001 * ms, paused, 0}, {3999 * ms, paused, 0}, {4 * s, answered, 0}, {4001 * ms, answered, 0}},
		"not if another call was answered meanwhile":           {{0, lost, 0}, {1 * s, answered, 0}, {3001 * ms, answered, 0}},
		"an answer before the lost call began says nothing":    {{0, answered, 0}, {1 * s, lost, 0}, {4001 * ms, paused, 0}},
		"a second lost call does not make the pause longer":    {{0, lost, 0}, {900 * ms, lost, 0}, {3999 * ms, paused, 0}, {4 * s, answered, 0}},
		"a lost probe makes the pause longer":                  {{0, lost, 0}, {4 * s, lost, 0}, {4500 * ms, paused, 0}, {7001 * ms, paused, 0}, {8 * s, answered, 0}},
		"a stale probe does not open it again":                 {{0, lost, 0}, {4 * s, lost, 0}, {5 * s, answered, 0}, {6 * s, answered, 0}, {7001 * ms, answered, 0}},
		"only the latest probe makes the pause longer":         {{0, lost, 0}, {4 * s, lost, 0}, {5 * s, lost, 0}, {6 * s, lost, 0}, {7001 * ms, answered, 0}},
		"the latest probe, given up, lets another one through": {{0, lost, 0}, {4 * s, givenUp, 4200 * ms}, {4100 * ms, paused, 0}, {4201 * ms, answered, 0}},
		"a stale probe, given up, lets nobody through":         {{0, lost, 0}, {4 * s, givenUp, 5500 * ms}, {5 * s, lost, 0}, {5501 * ms, paused, 0}, {6 * s, answered, 0}},
		"another call, given up, lets nobody through":          {{0, lost, 0}, {900 * ms, givenUp, 3500 * ms}, {3501 * ms, paused, 0}, {4 * s, answered, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, calls) })
		})
	}
}

func play(t *testing.T, calls []timed) {
	t.Helper()
	g := open(t, client.Options{Activities: activities, MaxTries: 1, Client: fake(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		var e event
		if err := json.Unmarshal(in.Payload, &e); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(e.UserID)
		if err != nil {
			return nil, err
		}
		if calls[i].want == lost || calls[i].want == givenUp {
			return silent(ctx)
		}
		return body(okBody)(ctx)
	})})
	began := time.Now()
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			time.Sleep(c.at)
			ctx := t.Context()
			if c.want == givenUp {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				time.AfterFunc(c.ends-c.at, cancel)
			}
			_, err := g.Status(ctx, "create_post", client.Request{UserID: strconv.Itoa(i)})
			if got := outcome(err); got != c.want {
				t.Errorf("the call at %v is %s, want %s: %v", c.at, got, c.want, err)
			}
			if took := time.Since(began) - c.at; c.want == lost && took != 3*time.Second {
				t.Errorf("the call at %v took %v", c.at, took)
			}
		})
	}
	wg.Wait()
}

func outcome(err error) string {
	switch {
	case err == nil:
		return answered
	case errors.Is(err, context.Canceled) && kindOf(err) == nil:
		return givenUp
	case errors.Is(err, client.ErrOutage) && err.Error() == "posts-guard did not answer a moment ago":
		return paused
	case errors.Is(err, client.ErrOutage):
		return lost
	}
	return err.Error()
}
