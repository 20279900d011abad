package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

// A yes grants everything, and holds it for 9 s.
type yes struct{ client.Local }

func (yes) Decide(_ context.Context, r guards.Request) (guards.Decision, error) {
	d := guards.Decision{Allowed: true, Reason: guards.OK, UserID: r.UserID, Activity: r.Activity, Op: r.Op, Granted: max(1, r.Count)}
	d.At = time.Now().UnixMilli()
	d.RequestID, d.HeldUntil = "r1", d.At+9_000
	return d, nil
}

// eachYes runs a test with a client that asks in the app's process, and with one that asks by
// Invoke. Time is that of a bubble.
func eachYes(t *testing.T, test func(*testing.T, *client.Guards, *desk)) {
	t.Helper()
	for name, invokes := range map[string]bool{"local": false, "invoke": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{Local: yes{}}
				o := client.Options{Local: d, Activities: activities, Warn: func(err error) { t.Error(err) }}
				if invokes {
					o.Local, o.Client = nil, d
				}
				test(t, open(t, o), d)
			})
		})
	}
}

var numbers = []guards.Numbers{nil, guards.Number(0), guards.Number(1_000_000), {"tenant": 50_000, "call_api": 0, "room.minute": 7}}

func TestEachOpButResetTakesALimit(t *testing.T) {
	eachYes(t, func(t *testing.T, g *client.Guards, d *desk) {
		for _, limit := range numbers {
			r := client.Request{UserID: "u1", Tier: "gold", Limit: limit, At: 1, RequestID: "r1"}
			for op, verb := range verbs(g) {
				answer := testkit.Must(verb(t.Context(), "create_post", r))(t)
				sent := d.asked[len(d.asked)-1]
				if sent.Op != op || sent.Tier != "gold" || !reflect.DeepEqual(sent.Limit, limit) {
					t.Errorf("%s of %v sends %+v", op, limit, sent)
				}
				if want := (client.Asked{Tier: "gold", Limit: limit}); !reflect.DeepEqual(answer.Asked, want) {
					t.Errorf("%s keeps %+v, want %+v", op, answer.Asked, want)
				}
			}
		}
		before := len(d.asked)
		_, err := g.Reset(t.Context(), "create_post", client.Request{UserID: "u1", Limit: guards.Number(5)})
		if !errors.Is(err, client.ErrValidation) || err.Error() != "limit does not go with a reset" || len(d.asked) != before {
			t.Errorf("a reset: %v", err)
		}
	})
}

// A wrong number lets nobody pass while the guard is away, and its error shows no text that could be an id.
func TestAWrongLimitIsNotSent(t *testing.T) {
	const form = "limit has a name of another form, want those in the answer's limits, such as tenant or room.minute"
	for _, tt := range []struct {
		limit guards.Numbers
		want  string
	}{
		{guards.Number(-1), "limit is -1, want 0 to 1,000,000"},
		{guards.Number(1_000_001), "limit is 1000001, want 0 to 1,000,000"},
		{guards.Numbers{"tenant": -5}, "limit.tenant is -5, want 0 to 1,000,000"},
		{guards.Numbers{"call_api": 1, "room.minute": 1 << 40}, "limit.room.minute is 1099511627776, want 0 to 1,000,000"},
		{guards.Numbers{"": 1, "tenant": 1}, form},
		{guards.Numbers{"user-1": 1}, form},
		{guards.Numbers{"Tenant": 1}, form},
		{guards.Numbers{"_": 1}, form},
		{guards.Numbers{".minute": 1}, form},
		{guards.Numbers{"room.": 1}, form},
		{guards.Numbers{"room.minute.day": 1}, form},
		{guards.Numbers{"tenant\n": 1}, form},
		{guards.Numbers{strings.Repeat("a", 37): 1}, form},
	} {
		g, f := with(t, client.Options{}, broken(errNetwork))
		r := client.Request{UserID: "u1", Limit: tt.limit, At: 1, RequestID: "r1"}
		for op, verb := range verbs(g) {
			_, err := verb(t.Context(), "create_post", r)
			if failure, ok := errors.AsType[*client.Error](err); !ok || !errors.Is(err, client.ErrValidation) || failure.Guard != "posts-guard" || err.Error() != tt.want {
				t.Errorf("%s with %v: %v, want %s", op, tt.limit, err, tt.want)
			}
		}
		if len(f.events) != 0 {
			t.Errorf("%v was sent", tt.limit)
		}
	}
}

// What follows a check is decided by the same limit as the check, even if the app stored the decision and used its map again.
func TestADecisionKeepsWhatWasAsked(t *testing.T) {
	eachYes(t, func(t *testing.T, g *client.Guards, desk *desk) {
		for _, limit := range numbers {
			ask := func() client.Request {
				own := guards.Numbers{}
				maps.Copy(own, limit)
				return client.Request{UserID: "u1", Tier: "gold", Limit: own, Count: 4}
			}
			stored := func() client.Decision {
				r := ask()
				d := testkit.Must(g.Check(t.Context(), "create_post", r))(t)
				r.Limit["tenant"] = 1 // the app may use its map again
				text, err := json.Marshal(d)
				var again client.Decision
				if err = errors.Join(err, json.Unmarshal(text, &again)); err != nil || !reflect.DeepEqual(again.Asked, d.Asked) {
					t.Fatalf("%v from %s, %v", again.Asked, text, err)
				}
				return again
			}
			for name, follow := range map[string]func() error{
				"release": func() error { _, err := g.ReleaseDecision(t.Context(), stored()); return err },
				"settle":  func() error { return g.Settle(t.Context(), stored(), 1) },
				"guarded": func() error {
					err := g.Guarded(t.Context(), "create_post", ask(), func(client.Decision) error { return errSave })
					if errors.Is(err, errSave) {
						return nil
					}
					return err
				},
				"attempt": func() error {
					r := ask()
					r.Count = 0
					_, err := g.Attempt(t.Context(), "create_post", r, says(true, nil))
					return err
				},
				"slot": func() error {
					s, err := g.Slot(t.Context(), "create_post", ask())
					if err != nil {
						return err
					}
					time.Sleep(4 * time.Second) // one renewal
					s.Release(t.Context())
					synctest.Wait() // otherwise the slot can still seem open to settle
					return nil
				},
			} {
				desk.asked = nil
				if err := follow(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				want := map[string]string{"slot": "check renew release"}[name]
				if want == "" {
					want = "check release"
				}
				if desk.ops() != want {
					t.Errorf("%s sends %s, want %s", name, desk.ops(), want)
				}
				for _, sent := range desk.asked {
					if sent.Tier != "gold" || len(sent.Limit) != len(limit) || len(limit) > 0 && !reflect.DeepEqual(sent.Limit, limit) {
						t.Errorf("%s: a %s sends %+v, want the tier and %v", name, sent.Op, sent, limit)
					}
				}
			}
		}
	})
}

// Only what was given is kept.
func TestOnlyWhatWasGivenIsKept(t *testing.T) {
	for want, r := range map[string]client.Request{
		``:                                   {UserID: "u1", Limit: guards.Numbers{}},
		`,"asked":{"tier":"gold"}`:           {UserID: "u1", Tier: "gold"},
		`,"asked":{"limit":0}`:               {UserID: "u1", Limit: guards.Number(0)},
		`,"asked":{"limit":{"a":1}}`:         {UserID: "u1", Limit: guards.Numbers{"a": 1}},
		`,"asked":{"limit":5,"tier":"gold"}`: {UserID: "u1", Limit: guards.Number(5), Tier: "gold"},
	} {
		g, _ := with(t, client.Options{}, body(okBody))
		d := testkit.Must(g.Check(t.Context(), "create_post", r))(t)
		text, err := json.Marshal(d)
		if full := strings.TrimSuffix(okBody, "}") + `,"guard":"posts-guard"` + want + "}"; err != nil || string(text) != full {
			t.Errorf("%s, %v, want %s", text, err, full)
		}
	}
}

// Waiting does not help a customer who has not bought enough, so Wait returns at once. Such a refusal has no figures.
func TestTooLowALimitIsNotWaitedFor(t *testing.T) {
	const answer = `{"allowed":false,"reason":"limited","userId":"u1","activity":"create_post","op":"check","granted":0,"message":"m"}`
	g, _ := with(t, client.Options{}, body(answer))
	d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1", Limit: guards.Number(0)})
	if err != nil || d.Reason != client.Limited || d.Limit != 0 || d.Wait(t.Context(), 0) {
		t.Errorf("%+v, %v, want a refusal that can't be waited for", d, err)
	}
	err = g.Guarded(t.Context(), "create_post", client.Request{UserID: "u1", Limit: guards.Number(0)}, func(client.Decision) error { return nil })
	if !errors.Is(err, client.ErrLimited) || err.Error() != "m" {
		t.Error(err)
	}
}
