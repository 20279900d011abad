package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/limiter"
)

// A door is a client of a desk that counts sign-ins: three failures of an account lock it.
type door struct {
	*client.Guards
	*desk
	way    string
	warned []string
}

// A desk decides with real limits.
type desk struct {
	client.Local

	mu    sync.Mutex
	asked []guards.Request
	fails map[guards.Op]error // instead of an answer
}

// eachWay runs a test with a desk in the app's process, and with one behind Invoke. Time is
// that of a bubble.
func eachWay(t *testing.T, hold bool, test func(*testing.T, *door)) {
	t.Helper()
	for _, way := range []string{"local", "invoke"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, openDoor(t, way, hold)) })
		})
	}
}

func openDoor(t *testing.T, way string, hold bool) *door {
	t.Helper()
	page := []guards.Guard{{Name: "doors-guard", Message: "Too many attempts.", Activities: []guards.Activity{
		{Name: "sign_in", Limit: "lockout 3/15m for 1m to 1h", Hold: hold},
		{Name: "come_in", Limit: "9/1d", Subjects: []guards.Subject{{Name: "ip", Limit: "lockout 2/15m for 1m", Optional: true}}},
		{Name: "knock", Unlimited: true},
	}}}
	l := testkit.Must(limiter.InMemory(page, nil))(t)
	d := &door{desk: &desk{Local: l, fails: map[guards.Op]error{}}, way: way}
	o := client.Options{Local: d.desk, Warn: func(err error) { d.warned = append(d.warned, err.Error()) }}
	if way == "invoke" {
		o.Local, o.Client = nil, d.desk
		o.Activities = []client.Activity{
			{Name: "sign_in", Guard: "doors-guard", Window: 15 * time.Minute, Hold: hold},
			{Name: "come_in", Guard: "doors-guard", Subjects: []string{"ip?"}}, {Name: "knock", Guard: "doors-guard"},
		}
	}
	d.Guards = open(t, o)
	return d
}

// Decide implements client.Local.
func (d *desk) Decide(ctx context.Context, r guards.Request) (guards.Decision, error) {
	d.mu.Lock()
	d.asked = append(d.asked, r)
	failure := d.fails[r.Op]
	d.mu.Unlock()
	if failure != nil {
		return guards.Decision{}, failure
	}
	return d.Local.Decide(ctx, r)
}

// Invoke implements client.Invoker.
func (d *desk) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	var r guards.Request
	if err := json.Unmarshal(in.Payload, &r); err != nil {
		return nil, err
	}
	answer, err := d.Decide(ctx, r)
	switch {
	case errors.Is(err, guards.ErrUnavailable):
		return functionError("Unavailable", err.Error())(ctx)
	case err != nil:
		return functionError("ValidationError", err.Error())(ctx)
	}
	payload, err := json.Marshal(answer)
	return &lambda.InvokeOutput{Payload: payload}, err
}

// ops returns what was asked, such as "check release".
func (d *desk) ops() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ops []string
	for _, r := range d.asked {
		ops = append(ops, string(r.Op))
	}
	return strings.Join(ops, " ")
}

// counted returns how many attempts of u1 count.
func (d *door) counted(t *testing.T, activity string, subjects map[string]string) guards.Decision {
	t.Helper()
	answer := testkit.Must(d.Local.Decide(t.Context(), guards.Request{UserID: "u1", Activity: activity, Op: guards.Status, Subjects: subjects}))(t)
	return answer
}

// fail makes an attempt of u1 that fails.
func (d *door) fail(t *testing.T) {
	t.Helper()
	if ok, err := d.Attempt(t.Context(), "sign_in", u1, says(false, nil)); ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
}

// says is a verify that returns the same each time.
func says(ok bool, err error) func(context.Context, client.Decision) (bool, error) {
	return func(context.Context, client.Decision) (bool, error) { return ok, err }
}
