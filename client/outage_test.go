package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
)

// The answers of a guard whose table did not answer.
var (
	memoryBody = strings.Replace(okBody, `"ok"`, `"unavailable"`, 1)
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
	if d, err := open(t, client.Options{Local: away}).Check(t.Context(), "create_post", user); err != nil || d.Allowed {
		t.Errorf("in this process, without a setting: %+v, %v", d, err)
	}
}

// Deny of one call refuses what one instance's memory allowed. The client's own option does not.
func TestDenyOfOneCallRefusesTheMemory(t *testing.T) {
	for name, answer := range map[string]string{"with a receipt": memoryBody, "in shadow mode": shadowBody} {
		var kept guards.Decision
		if err := json.Unmarshal([]byte(answer), &kept); err != nil {
			t.Fatal(err)
		}
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
				d, err := g.Check(t.Context(), "create_post", onOutage(client.Deny))
				if err != nil {
					t.Fatal(err)
				}
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
				err = g.Guarded(t.Context(), "create_post", onOutage(client.Deny), func(client.Decision) error { t.Error("saved"); return nil })
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

// What the memory refuses is an ordinary refusal.
func TestDenyLeavesARefusalOfTheMemory(t *testing.T) {
	g, _ := with(t, client.Options{}, body(strings.Replace(limitedBody, `"limited"`, `"unavailable"`, 1)))
	if d, err := g.Check(t.Context(), "create_post", onOutage(client.Deny)); err != nil || d.Allowed || d.Outage != nil || d.Message != "Rate limit exceeded" {
		t.Errorf("%+v, %v", d, err)
	}
}
