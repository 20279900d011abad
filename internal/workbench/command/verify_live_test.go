package command

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A mode that refuses no request can't be verified.
func TestVerifyInALiveMode(t *testing.T) {
	p := ofApp(t)
	for mode, want := range map[string]string{
		"off":    "guards: create_room is not limited now: the guard answers unlimited\n",
		"shadow": "guards: create_room is in shadow mode, in which the guard refuses nobody: set the mode to enforce, and try again\n",
	} {
		p.does("limits set create_room --mode " + mode + " --yes")
		p.fails("verify create_room --callers 5 --store dynamodb", wrongUse, want)
	}
}

// A live limit says prepaid itself, and is judged by it.
func TestVerifyOfALivePrepaidLimit(t *testing.T) {
	p := ofContent(t)
	p.page = busy
	for activity, tt := range map[string][2]string{
		"call":  {"190/1m", "exactly the limit,"},
		"plain": {"300/1m prepaid", "at most the limit of 300, as a prepaid one promises,"},
	} {
		p.does(`limits set ` + activity + ` "` + tt[0] + `" --yes`)
		p.contains("verify "+activity+" --callers 5 --store dynamodb", " allowed, "+tt[1])
	}
}

// A live limit that only a function knows can consist of several.
func TestVerifyOfSeveralLiveLimits(t *testing.T) {
	l := &ratelimit.Limiter{Store: new(memstore.Store), Now: atPinned}
	ask := func(ctx context.Context, r guard.Request) (guards.Decision, error) {
		several := ratelimit.Request{UserID: r.UserID, Activity: "a", Policy: policy.Must("minute: 20/1m, hour: 7/1h"), Count: 1, ID: rand.Text(), Fresh: true}
		d, err := l.Decide(ctx, r.Op, several)
		answer := guard.Answer{Request: r, Allowed: d.Allowed, Reason: d.Reason, Decision: &d}
		return answer.Public(), err
	}
	c := verifyCommand{Callers: 5}
	v, err := c.race(t.Context(), session{now: atPinned}, ask, one("10/1m"))
	if want := []usedLimit{{"minute", 20, 7}, {"hour", 7, 7}}; err != nil || !v.Exact || v.Asked != 12 || !slices.Equal(v.Limits, want) {
		t.Errorf("%+v, %v, want %v", v, err, want)
	}
}
