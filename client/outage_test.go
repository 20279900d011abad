package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

// Answers of a guard, the first and the last one of one whose table did not answer.
var (
	memoryBody = strings.Replace(okBody, `"ok"`, `"unavailable"`, 1)
	heldBody   = strings.TrimSuffix(okBody, "}") + `,"heldUntil":1700000060000}` // of a guard with slots of a minute
	shadowBody = `{"allowed":true,"reason":"unavailable","userId":"u1","activity":"create_post","op":"check","granted":2}`
)

// oneAnswer is a Local that gives one answer.
type oneAnswer struct {
	d   guards.Decision
	err error
}

func (l oneAnswer) Decide(context.Context, guards.Request) (guards.Decision, error) {
	return l.d, l.err
}
func (l oneAnswer) Window(string) time.Duration { return time.Minute }

func (l oneAnswer) Guards() []guards.Guard {
	return []guards.Guard{{Name: "posts-guard", Message: "m", Activities: []guards.Activity{{Name: "create_post", Limit: "10/1m"}}}}
}

// onOutage returns a request with its own decision in an outage.
func onOutage(o client.OnOutage) client.Request {
	return client.Request{UserID: "u1", Count: 2, OnOutage: o}
}

func TestOnOutageOfOneCallWins(t *testing.T) {
	away := oneAnswer{err: guards.ErrUnavailable}
	for _, call := range []client.OnOutage{client.Allow, client.Deny} {
		other := map[client.OnOutage]client.OnOutage{client.Allow: client.Deny, client.Deny: client.Allow}[call]
		byInvoke, f := with(t, client.Options{OnOutage: other}, functionError("Unavailable", "m"))
		agent, _ := byAgent(t, client.Options{OnOutage: other}, marked(503, `{"status":503,"detail":"the table","errorType":"Unavailable"}`))
		for name, g := range map[string]*client.Guards{"by Invoke": byInvoke, "by an agent": agent, "in this process": open(t, client.Options{Local: away})} {
			t.Run(name+", "+string(call), func(t *testing.T) {
				allowed := call == client.Allow
				d, err := g.Check(t.Context(), "create_post", onOutage(call))
				if err != nil || d.Allowed != allowed || !errors.Is(d.Outage, client.ErrOutage) || d.Reason != client.Unavailable || allowed && d.Granted != 2 {
					t.Errorf("%+v, %v", d, err)
				}
				saved := false
				err = g.Guarded(t.Context(), "create_post", onOutage(call), func(client.Decision) error { saved = true; return nil })
				if saved != allowed || errors.Is(err, client.ErrLimited) == allowed || errors.Is(err, client.ErrOutage) == allowed {
					t.Errorf("guarded: %v, saved: %v", err, saved)
				}
				slot, err := g.Slot(t.Context(), "create_post", onOutage(call))
				if err != nil || slot.Allowed != allowed {
					t.Errorf("slot: %+v, %v", slot, err)
				}
			})
		}
		if len(f.events) != 3 {
			t.Errorf("%+v", f.events)
		}
	}
	if d, err := open(t, client.Options{Local: away}).Check(t.Context(), "create_post", u1); err != nil || d.Allowed {
		t.Errorf("in this process, without a setting: %+v, %v", d, err)
	}
}

// Deny of one call refuses what one instance's memory allowed. The client's own option does not.
func TestDenyOfOneCallRefusesTheMemory(t *testing.T) {
	for name, answer := range map[string]string{"with a receipt": memoryBody, "in shadow mode": shadowBody} {
		var kept guards.Decision
		testkit.OK(t, json.Unmarshal([]byte(answer), &kept))
		var warned []error
		warn := func(err error) { warned = append(warned, err) }
		byInvoke, _ := with(t, client.Options{OnOutage: client.Deny, Prefix: "dev-", Warn: warn}, body(answer))
		agent, _ := byAgent(t, client.Options{OnOutage: client.Deny, Warn: warn, Activities: activities}, marked(200, answer))
		for asked, g := range map[string]*client.Guards{
			"dev-posts-guard": byInvoke, "the agent at http://127.0.0.1:": agent, "posts-guard": open(t, client.Options{Local: oneAnswer{d: kept}, Warn: warn}),
		} {
			t.Run(name+", "+asked, func(t *testing.T) {
				warned = nil
				for _, o := range []client.OnOutage{"", client.Allow} {
					if d, err := g.Check(t.Context(), "create_post", onOutage(o)); err != nil || !d.Allowed || d.Granted != 2 || d.Outage != nil || warned != nil {
						t.Errorf("%q: %+v, %v", o, d, err)
					}
				}
				d := testkit.Must(g.Check(t.Context(), "create_post", onOutage(client.Deny)))(t)
				want := client.Decision{Guard: "posts-guard", Outage: d.Outage, Decision: guards.Decision{
					Reason: client.Unavailable, UserID: "u1", Activity: "create_post", Op: guards.Check, Message: "Please try again later.",
				}}
				if diff := cmp.Diff(want, d, cmpopts.EquateErrors()); diff != "" {
					t.Error(diff)
				}
				const why = " decided from its memory, because its table did not answer"
				if !errors.Is(d.Outage, client.ErrOutage) || !strings.HasPrefix(d.Outage.Error(), asked) || !strings.HasSuffix(d.Outage.Error(), why) {
					t.Errorf("%v, want one of %s", d.Outage, asked)
				}
				if len(warned) != 1 || !errors.Is(warned[0], d.Outage) {
					t.Errorf("warned of %v", warned)
				}
				err := g.Guarded(t.Context(), "create_post", onOutage(client.Deny), func(client.Decision) error { t.Error("saved"); return nil })
				if !errors.Is(err, client.ErrLimited) || !errors.Is(err, client.ErrOutage) {
					t.Error(err)
				}
				if slot, err := g.Slot(t.Context(), "create_post", onOutage(client.Deny)); err != nil || slot.Allowed || slot.Outage == nil {
					t.Errorf("%+v, %v", slot, err)
				}
				if d, err := g.Check(t.Context(), "create_post", onOutage("")); err != nil || !d.Allowed { // no pause: the guard answered
					t.Errorf("after it: %+v, %v", d, err)
				}
			})
		}
	}
}

// The table has counted for some of the subjects, and memory decided for the others. The caller may
// have gone meanwhile.
func TestWhatWasCountedForACheckThatDenyRefusesIsGivenBackOnce(t *testing.T) {
	for name, release := range map[string]reply{"given back": body(okBody), "not given back": functionError("Unavailable", "m")} {
		t.Run(name, func(t *testing.T) {
			var warned []error
			ctx, cancel := context.WithCancel(t.Context())
			counted := func(ctx context.Context) (*lambda.InvokeOutput, error) {
				cancel()
				return body(memoryBody)(ctx)
			}
			g, f := with(t, client.Options{Warn: func(err error) { warned = append(warned, err) }}, counted, release)
			d, err := g.Check(ctx, "create_post", onOutage(client.Deny))
			if err != nil || d.Allowed || d.At != 0 {
				t.Errorf("%+v, %v", d, err)
			}
			want := event{UserID: "u1", Activity: "create_post", Op: "release", RequestID: "r1", Count: 2, At: 1700000000000}
			if len(f.events) != 2 || f.events[1] != want {
				t.Errorf("%+v, want a check and %+v", f.events, want)
			}
			if got, want := len(warned), map[string]int{"given back": 1, "not given back": 2}[name]; got != want {
				t.Errorf("%d warnings, want %d: %v", got, want, warned)
			}
		})
	}
}

// What the memory refuses is an ordinary refusal.
func TestDenyLeavesARefusalOfTheMemory(t *testing.T) {
	g, _ := with(t, client.Options{}, body(strings.Replace(limitedBody, `"limited"`, `"unavailable"`, 1)))
	if d, err := g.Check(t.Context(), "create_post", onOutage(client.Deny)); err != nil || d.Allowed || d.Outage != nil || d.Message != "Rate limit exceeded" {
		t.Errorf("%+v, %v", d, err)
	}
}

// An observer keeps what Observe gets.
type observer struct {
	mu   sync.Mutex
	seen []observation
}

type observation struct {
	d    client.Decision
	took time.Duration
	way  string
}

func (o *observer) observe(d client.Decision, took time.Duration, way string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, observation{d, took, way})
}

func TestEachDecisionIsObservedWithoutIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(observer)
		g, _ := with(t, client.Options{Observe: o.observe}, slow(50*time.Millisecond))
		r := client.Request{UserID: "u1", RequestID: "r1", At: 1, Subjects: ids{"room": "room-99"}}
		d, err := g.Check(t.Context(), "write", r)
		if err != nil || d.UserID != "u1" || d.RequestID != "r1" || d.Subjects["room"] != "room-99" {
			t.Fatalf("%+v, %v, want the ids", d, err)
		}
		_, status := g.Status(t.Context(), "write", r)
		_, release := g.ReleaseDecision(t.Context(), d)
		_, renew := g.Renew(t.Context(), "write", r)
		_, reset := g.Reset(t.Context(), "create_post", u1)
		settle := g.Settle(t.Context(), d, 1)
		guarded := g.Guarded(t.Context(), "write", r, func(client.Decision) error { return nil })
		testkit.OK(t, errors.Join(status, release, renew, reset, settle, guarded, g.Ready(t.Context(), "write")))
		if len(o.seen) != 8 {
			t.Fatalf("%+v, want 8 decisions", o.seen)
		}
		for i, got := range o.seen {
			want := d
			want.UserID, want.RequestID, want.Subjects = "", "", nil
			if want.Guard = "rooms-guard"; i == 4 {
				want.Guard = "posts-guard"
			}
			if diff := cmp.Diff(want, got.d); diff != "" || got.took != 50*time.Millisecond || got.way != "invoke" {
				t.Errorf("%d: after %v by %s, %s", i, got.took, got.way, diff)
			}
		}
	})
}

func TestTheWayOfADecision(t *testing.T) {
	o := new(observer)
	server := httptest.NewServer(marked(200, okBody))
	defer server.Close()
	sdk := lambda.New(lambda.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}})
	functions := open(t, client.Options{Observe: o.observe, Activities: activities, Client: sdk, URLs: map[string]string{"posts-guard": server.URL}})
	agent := open(t, client.Options{Observe: o.observe, Activities: activities, Agent: server.URL})
	here := open(t, client.Options{Observe: o.observe, Local: oneAnswer{d: guards.Decision{Allowed: true}}})
	for _, ask := range []struct {
		g        *client.Guards
		activity string
	}{{functions, "create_post"}, {functions, "photos-guard/upload_photo"}, {agent, "create_post"}, {here, "create_post"}} {
		testkit.Must(ask.g.Check(t.Context(), ask.activity, u1))(t)
	}
	var ways []string
	for _, got := range o.seen {
		ways = append(ways, got.way)
	}
	if want := []string{"url", "invoke", "agent", "local"}; !slices.Equal(ways, want) {
		t.Errorf("%q, want %q", ways, want)
	}
}

func TestAnOutageThatWasDecidedIsObservedAndAnErrorIsNot(t *testing.T) {
	o := new(observer)
	g, _ := with(t, client.Options{Observe: o.observe}, functionError("Unavailable", "u1"))
	for _, choice := range []client.OnOutage{client.Allow, client.Deny} {
		testkit.Must(g.Check(t.Context(), "create_post", onOutage(choice)))(t)
	}
	if _, err := g.Status(t.Context(), "create_post", u1); !errors.Is(err, client.ErrOutage) {
		t.Error(err)
	}
	if _, err := g.Check(t.Context(), "create_post", client.Request{}); !errors.Is(err, client.ErrValidation) {
		t.Error(err)
	}
	if len(o.seen) != 2 || !o.seen[0].d.Allowed || o.seen[1].d.Allowed {
		t.Fatalf("%+v, want the two checks", o.seen)
	}
	for _, got := range o.seen {
		if got.d.Reason != client.Unavailable || !errors.Is(got.d.Outage, client.ErrOutage) || strings.Contains(fmt.Sprint(got.d.Outage, got.d), "u1") {
			t.Errorf("%+v", got.d)
		}
	}
}

// A renewal runs in a goroutine of the client's own, where a panic would end the app.
func TestAPanicOfTheAppsFunctionsChangesNothing(t *testing.T) {
	logged := testkit.DefaultLog(t)
	synctest.Test(t, func(t *testing.T) {
		away := functionError("Unavailable", "m")
		g, _ := with(t, client.Options{
			Warn:    func(error) { panic("no log") },
			Observe: func(client.Decision, time.Duration, string) { panic("no metrics") },
		}, away, body(heldBody), away, body(heldBody), away)
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("the panic %q reaches the app", p)
			}
		}()
		if d, err := g.Check(t.Context(), "create_post", u1); err != nil || !d.Allowed || d.Outage == nil {
			t.Errorf("%+v, %v, want the decision of an outage", d, err)
		}
		slot := testkit.Must(g.Slot(t.Context(), "create_post", u1))(t)
		time.Sleep(22 * time.Second) // a renewal that fails, and its repeat
		if !slot.Allowed || slot.Lost() {
			t.Errorf("%+v, lost: %v", slot.Decision, slot.Lost())
		}
		slot.Release(t.Context()) // fails twice
		if n, warned := strings.Count(logged.String(), "no metrics"), strings.Count(logged.String(), "no log"); n != 3 || warned != 3 {
			t.Errorf("the log has the panics of %d decisions and %d warnings, want those of two checks and a renewal, and of a check, a renewal and the release: %s", n, warned, logged)
		}
	})
}
