package guardstest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/client/httpguard"
	"github.com/cric-talk/guards/guardstest"
	"github.com/cric-talk/guards/internal/testkit"
)

// u1 is the request of most tests.
var u1 = client.Request{UserID: "u1"}

func TestEverythingIsAllowed(t *testing.T) {
	g := guardstest.New()
	c := g.Client(t, activities.All)
	d, err := c.Check(t.Context(), "create_post", client.Request{UserID: "u1", Count: 3})
	if err != nil || !d.Allowed || d.Reason != guards.OK || d.Granted != 3 || d.Remaining <= 0 || d.At == 0 || d.RequestID == "" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := c.ReleaseDecision(t.Context(), d); err != nil {
		t.Error(err)
	}
	calls := g.Calls()
	if len(calls) != 2 || calls[0].UserID != "u1" || calls[0].Count != 3 || calls[1].Op != guards.Release || calls[1].At != d.At || calls[1].RequestID != d.RequestID {
		t.Errorf("calls %+v, want the check and its release", calls)
	}
}

// A test sees the numbers that the app gives, in a check and in what follows it.
func TestCallsShowTheLimit(t *testing.T) {
	g := guardstest.New()
	c := g.Client(t, activities.All)
	d := testkit.Must(c.Check(t.Context(), "create_post", client.Request{UserID: "u1", Tier: "gold", Limit: guards.Number(5), Count: 3}))(t)
	testkit.OK(t, c.Settle(t.Context(), d, 1))
	calls := g.Calls()
	if len(calls) != 2 || calls[1].Op != guards.Release {
		t.Fatalf("%+v, want the check and its release", calls)
	}
	for _, call := range calls {
		if n, ok := call.Limit[""]; n != 5 || !ok || len(call.Limit) != 1 || call.Tier != "gold" {
			t.Errorf("%+v, want the number 5 and the tier", call)
		}
	}
}

// A number that is too low for the request refuses as with a guard: no wait helps.
func TestANumberThatIsTooLow(t *testing.T) {
	c := guardstest.New().Client(t, activities.All)
	for _, tt := range []struct {
		r    client.Request
		by   string
		fits bool
	}{
		{r: client.Request{Limit: guards.Number(0)}},
		{r: client.Request{Limit: guards.Number(0), Partial: true}},
		{r: client.Request{Limit: guards.Number(500), Count: 1000}},
		{r: client.Request{Limit: guards.Numbers{"tenant": 0, "call_api": 5}}, by: "tenant"},
		{r: client.Request{Limit: guards.Number(1)}, fits: true},
		{r: client.Request{Limit: guards.Number(500), Count: 1000, Partial: true}, fits: true},
		{r: client.Request{Limit: guards.Numbers{"tenant": 3}, Count: 3}, fits: true},
	} {
		tt.r.UserID = "u1"
		d, err := c.Check(t.Context(), "create_post", tt.r)
		if err != nil || d.Allowed != tt.fits || d.LimitedBy != tt.by {
			t.Errorf("%+v: %+v, %v", tt.r, d, err)
		}
		if !tt.fits && (d.Reason != guards.Limited || d.Granted != 0 || d.Message == "" || d.Limit != 0 || d.WaitTime != 0 || d.ResetAt != 0) {
			t.Errorf("%+v: %+v, want a refusal without figures", tt.r, d)
		}
	}
	if d, err := c.Release(t.Context(), "create_post", client.Request{UserID: "u1", At: 1, RequestID: "r1", Limit: guards.Number(0)}); err != nil || !d.Allowed {
		t.Errorf("%+v, %v, want a release to do its work", d, err)
	}
}

func TestARefusal(t *testing.T) {
	g := guardstest.New()
	c := g.Client(t, activities.All)
	g.Refuse("create_post", guards.Decision{WaitTime: 42_000})
	for _, ask := range []func(context.Context, string, client.Request) (client.Decision, error){c.Check, c.Status} {
		d, err := ask(t.Context(), "create_post", u1)
		if err != nil || d.Allowed || d.Reason != guards.Limited || d.RetryAfter() != 42*time.Second || d.Limit != 1 || d.Remaining != 0 || d.Message == "" {
			t.Errorf("%+v, %v, want a refusal for 42 s", d, err)
		}
	}
	if d, err := c.Check(t.Context(), "update_post", u1); err != nil || !d.Allowed {
		t.Errorf("%+v, %v, want another activity to be allowed", d, err)
	}
	saved := false
	err := c.Guarded(t.Context(), "create_post", u1, func(client.Decision) error { saved = true; return nil })
	if !errors.Is(err, client.ErrLimited) || saved {
		t.Errorf("guarded: %v, saved %v", err, saved)
	}
	g.Allow("create_post")
	if d, err := c.Check(t.Context(), "create_post", u1); err != nil || !d.Allowed {
		t.Errorf("%+v, %v, want it to be allowed again", d, err)
	}
	g.Refuse("create_post", guards.Decision{Reason: guards.Blocked, Message: "You can't do this at the moment."})
	if d, _ := c.Check(t.Context(), "create_post", u1); d.Reason != guards.Blocked || d.Limit != 0 {
		t.Errorf("%+v, want a block, without figures", d)
	}
}

func TestAnOutage(t *testing.T) {
	g := guardstest.New()
	c := g.Client(t, activities.All)
	g.Outage(true)
	if d, err := c.Check(t.Context(), "create_post", u1); err != nil || d.Allowed || d.Outage == nil {
		t.Errorf("%+v, %v, want a refusal because of an outage", d, err)
	}
	if _, err := c.Status(t.Context(), "create_post", u1); !errors.Is(err, client.ErrOutage) {
		t.Errorf("%v, want an outage", err)
	}
	g.Outage(false)
	if d, err := c.Check(t.Context(), "create_post", u1); err != nil || !d.Allowed {
		t.Errorf("%+v, %v, want the guards to be back", d, err)
	}
}

// A sign-in of the app runs through the stand-in, and a test can play a lock.
func TestAttempts(t *testing.T) {
	g := guardstest.New()
	c := g.Client(t, activities.All)
	signIn := func(right bool) (bool, error) {
		return c.Attempt(t.Context(), "create_post", client.Request{UserID: "u1", Clear: true}, func(_ context.Context, d client.Decision) (bool, error) {
			return right && d.Allowed, nil
		})
	}
	for _, right := range []bool{true, false} {
		if ok, err := signIn(right); ok != right || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	}
	calls := g.Calls()
	if len(calls) != 3 || calls[1].Op != guards.Release || !calls[1].Clear || calls[1].RequestID == "" || calls[2].Op != guards.Check {
		t.Errorf("%+v, want a release after the success alone", calls)
	}
	g.Refuse("create_post", guards.Decision{WaitTime: 42_000, Locked: true})
	ok, err := signIn(true)
	refused, _ := errors.AsType[*client.Error](err)
	if ok || !errors.Is(err, client.ErrLimited) || !refused.Decision.Locked || refused.Decision.RetryAfter() != 42*time.Second {
		t.Errorf("%v, %v, want a lock", ok, err)
	}
	g.AllowWith("create_post", guards.Decision{Crossed: 100, Locked: true})
	var mails []client.Decision
	r := client.Request{UserID: "u1", OnLocked: func(d client.Decision) { mails = append(mails, d) }}
	if ok, err := c.Attempt(t.Context(), "create_post", r, func(context.Context, client.Decision) (bool, error) { return false, nil }); ok || err != nil || len(mails) != 1 || mails[0].Remaining != 0 || !mails[0].Locked {
		t.Errorf("%v, %v, and the mails %+v, want one", ok, err, mails)
	}
	g.AllowWith("create_post", guards.Decision{Reason: guards.Bypassed})
	before := len(g.Calls())
	if ok, err := signIn(true); !ok || err != nil || len(g.Calls()) != before+1 {
		t.Errorf("%v, %v after %+v, want no release of a bypassed attempt", ok, err, g.Calls()[before:])
	}
	g.Allow("create_post")
	if d, err := c.Check(t.Context(), "create_post", u1); err != nil || d.Locked || d.Crossed != 0 || d.Remaining == 0 {
		t.Errorf("%+v, %v, want the lock to be over", d, err)
	}
	g.Outage(true)
	if _, err := signIn(true); !errors.Is(err, client.ErrLimited) || !errors.Is(err, client.ErrOutage) {
		t.Errorf("%v, want a refusal in an outage", err)
	}
}

// The client is the app's own, so a mistake of the app is the same mistake in its test.
func TestMistakes(t *testing.T) {
	c := guardstest.New().Client(t, activities.All)
	for _, tt := range []struct {
		activity string
		r        client.Request
	}{
		{"craete_post", u1},
		{"create_post", client.Request{UserID: "u1", Count: -1}},
		{"create_post", client.Request{UserID: "u1", Limit: guards.Number(-1)}},
	} {
		if _, err := c.Check(t.Context(), tt.activity, tt.r); !errors.Is(err, client.ErrValidation) {
			t.Errorf("%s with %+v: %v, want a validation error", tt.activity, tt.r, err)
		}
	}
}

func TestASlotAndMiddleware(t *testing.T) {
	g := guardstest.New()
	c := g.Client(t, activities.All)
	slot, err := c.Slot(t.Context(), "pin", u1)
	if err != nil || !slot.Allowed {
		t.Fatalf("%+v, %v", slot, err)
	}
	slot.Release(t.Context())
	limit := httpguard.Middleware{Guards: c, Activity: "create_post", User: func(*http.Request) string { return "u1" }}
	handler := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	for _, want := range []int{http.StatusCreated, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/posts", nil))
		if w.Code != want {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
		g.Refuse("create_post", guards.Decision{WaitTime: 1_500})
		if want == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "2" {
			t.Errorf("Retry-After is %q, want 2", w.Header().Get("Retry-After"))
		}
	}
}
