package guard_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A settings is a table that holds a document, as a test writes it.
type settings struct {
	live.Stored
	looks  int
	blocks live.Stored
	slow   time.Duration // for each look
}

func (s *settings) Settings(context.Context, bool) (live.Stored, error) {
	s.looks++
	time.Sleep(s.slow)
	return s.Stored, nil
}

// Blocks implements [live.Source].
func (s *settings) Blocks(context.Context, bool) (live.Stored, error) { return s.blocks, nil }

// set writes a document. It moves the clock far enough that the next request
// makes the guard look.
func (s *settings) set(b *bench, now live.Settings) {
	b.t.Helper()
	stored, err := now.Stored(s.Version + 1)
	testkit.OK(b.t, err)
	s.Stored = stored
	b.now = b.now.Add(31 * time.Second)
}

// withLiveLimits runs a test with a guard that reads live limits. Time is
// virtual, so a read in the background is never late on a busy machine.
func withLiveLimits(t *testing.T, test func(*testing.T, *bench, *settings)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b, s := newBench(t), &settings{}
		b.Live = &live.Follower{Source: s, Guards: cricket.All, Now: func() time.Time { return b.now }}
		test(t, b, s)
	})
}

// grant returns settings that grant the canary a role or a tier.
func grant(role, tier string) live.Settings {
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return live.Settings{Grants: []live.Grant{{UserID: canary, Role: role, Tier: tier, Until: until, Reason: "r"}}}
}

// A request that needs no decision reads the live limits all the same.
// Otherwise a mode "off" or a granted role would stay forever.
func TestALiveModeOffAndAGrantedRoleEnd(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "off"}}})
		b.reasons(`{}`, "ok", "unlimited", "unlimited")
		s.set(b, grant("admin", ""))
		b.reasons(`{}`, "unlimited", "bypassed", "bypassed")
		s.set(b, live.Settings{})
		b.reasons(`{}`, "bypassed", "ok")
	})
}

// A granted tier applies to activities that name it. In other activities, the
// caller's own tier stays in force.
func TestAGrantedTierAppliesWhereItIsNamed(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		s.set(b, grant("", "burst"))
		b.reasons(`{}`, "ok")
		if got, err := b.ask(`{"tier": "premium"}`); err != nil || got["limit"] != 20.0 {
			t.Errorf("%v, %v, want the premium limit", got, err)
		}
		b.Guard = cricket.Chat
		if got, err := b.ask(`{"activity": "send_message"}`); err != nil || got["limit"] != 3.0 {
			t.Errorf("%v, %v, want the limit of the granted tier", got, err)
		}
	})
}

// An operator adds a tier to an activity and grants it to a user.
func TestAGrantedTierThatOnlyALiveLimitHasApplies(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		now := grant("", "gold")
		now.Activities = map[string]live.Override{"create_post": {Tiers: map[string]string{"gold": "30/1m"}}}
		s.set(b, now)
		b.reasons(`{}`, "ok")
		if got, err := b.ask(`{"tier": "premium"}`); err != nil || got["limit"] != 30.0 {
			t.Errorf("%v, %v, want the limit of the granted tier", got, err)
		}
	})
}

// The message for refused users is the code's, whatever the live limit is.
func TestTheMessageDoesNotFollowALiveLimit(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		b.Guard = cricket.Pins
		s.set(b, live.Settings{Activities: map[string]live.Override{"pin": {Limit: "log 1/12h"}}})
		b.mustAsk(`{"activity": "pin"}`)
		got := b.mustAsk(`{"activity": "pin"}`)
		if got["allowed"] != false || got["limit"] != 1.0 || got["message"] != "Pin limit reached (100/12h). Skipped remaining pins." {
			b.t.Errorf("%v, want a refusal by the live limit with the code's message", got)
		}
	})
}

// Only a bucket can have another window by a live limit or a granted tier. By
// Function URL, the header has the window in force.
func TestHeadersHaveTheWindowInForce(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		b.Guard = cricket.Chat
		for policy, now := range map[string]live.Settings{
			`"send_message";q=1;w=5`:  {},
			`"send_message";q=1;w=10`: {Activities: map[string]live.Override{"send_message": {Limit: "bucket 1/10s"}}},
			`"send_message";q=3;w=15`: grant("", "burst"),
		} {
			s.set(b, now)
			event := `{"userId": "` + canary + `", "activity": "send_message"}`
			b.call("POST", event, false) // its look finds what has changed
			if _, headers, _ := b.call("POST", event, false); headers["RateLimit-Policy"] != policy {
				t.Errorf("%v, want %s", headers, policy)
			}
		}
	})
}

// An operator tries a lower limit. A count that could never fit in it, but fits
// in the code's limit, is reported and goes through.
func TestALowerLimitThatIsTriedRefusesNoCount(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		invalid := func(event string) {
			t.Helper()
			if _, err := b.ask(event); !errors.As(err, new(*input.ValidationError)) {
				t.Errorf("%s: %v, want a ValidationError", event, err)
			}
		}
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Limit: "5/1m", Mode: "shadow"}}})
		b.reasons(`{}`, "ok") // this request reads the live limit
		b.reasons(`{"count": 8}`, "shadow")
		b.reasons(`{"count": 8, "op": "status"}`, "shadow")
		b.reasons(`{"count": 4}`, "ok") // nothing of the 8 was counted
		b.reasons(`{"count": 8, "partial": true}`, "shadow")
		invalid(`{"count": 11}`)
		b.store.away = errAway
		b.reasons(`{"count": 8}`, "unavailable")
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Limit: "5/1m"}}})
		b.store.away = nil
		b.reasons(`{}`, "ok", "ok") // the first one closes the circuit breaker, and the second one reads the live limit
		invalid(`{"count": 8}`)
	})
}

// What was counted before an operator tried a lower limit is a duplicate, whatever its count is.
func TestARepeatOfWhatALowerLimitNeverFits(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		const event = `{"count": 8, "requestId": "r1"}`
		b.reasons(event, "ok")
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Limit: "5/1m", Mode: "shadow"}}})
		b.reasons(event, "duplicate") // this request reads the live limit
		if got := testkit.Must(b.ask(event))(t); got["allowed"] != true || got["reason"] != "duplicate" || got["granted"] != 8.0 {
			t.Errorf("%v, want a duplicate of 8", got)
		}
	})
}

// Lambda freezes an instance after it answers. So a request that asks the table
// for nothing else waits for the live limits. If an instance gets only such
// requests, its limits are never older than 30 s at the next decision.
func TestAnExemptRequestWaitsForTheLiveLimits(t *testing.T) {
	const slow = 300 * time.Millisecond // the table
	off := live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "off"}}}
	for name, tt := range map[string]struct {
		before  live.Settings // in force
		request Request
		timeout time.Duration // DECISION_TIMEOUT
		left    time.Duration // until Lambda's deadline; 0: none
		wait    time.Duration
	}{
		"a live mode off":                  {before: off, wait: slow},
		"a granted role":                   {before: grant("admin", ""), wait: slow},
		"a role of the caller":             {request: Request{Roles: []string{"admin"}}, wait: slow},
		"an activity without a limit":      {before: off, request: Request{Activity: "like"}, wait: slow},
		"a request that asks the table":    {wait: 20 * time.Millisecond},
		"at most until Lambda's deadline":  {before: off, left: 250 * time.Millisecond, wait: 150 * time.Millisecond},
		"at most as long as a decision":    {before: off, timeout: 200 * time.Millisecond, wait: 200 * time.Millisecond},
		"at most until the caller goes on": {before: off, left: time.Millisecond, wait: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := newBench(t), &settings{}
				b.Limiter.Timeout = tt.timeout
				b.Live = &live.Follower{Source: s, Guards: cricket.All, Now: func() time.Time { return b.now }}
				s.set(b, tt.before)
				r := tt.request
				r.UserID, r.Activity = canary, cmp.Or(r.Activity, "create_post")
				if _, err := b.Decide(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Limit: "5/1m"}}})
				s.slow = slow
				ctx := t.Context()
				if tt.left > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.left)
					defer cancel()
				}
				began, asked := time.Now(), b.store.asked
				if _, err := b.Decide(ctx, r); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != tt.wait {
					t.Errorf("the answer took %v, want %v", took, tt.wait)
				}
				if exempt := name != "a request that asks the table"; exempt == (b.store.asked > asked) {
					t.Errorf("%d requests to the table for the decision", b.store.asked-asked)
				}
				if a, _ := b.Live.Limits().Activity(b.Guard.Activities[0]); (a.Limit.Max() == 5) != (tt.wait == slow) {
					t.Errorf("the limit is %q after a wait of %v", a.Limit, tt.wait)
				}
				time.Sleep(time.Second) // for the look
			})
		})
	}
}

// ChangeSettings, ChangeBlocks and SettingsHistory make a settings a table that operators can change.
func (s *settings) ChangeSettings(_ context.Context, _ int64, after live.Stored, _ liveedit.Change) error {
	s.Stored = after
	return nil
}

func (s *settings) ChangeBlocks(_ context.Context, _ int64, after live.Stored, _ liveedit.Change) error {
	s.blocks = after
	return nil
}

func (s *settings) Note(context.Context, liveedit.Change) error { return nil }

func (s *settings) SettingsHistory(context.Context) ([]liveedit.Change, error) { return nil, nil }

// tried are the activities whose limits are tried. Each has 10/1m.
var tried = limits.Guard{Name: "tried-guard", Message: "m", Activities: []limits.Activity{
	{Name: "post", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"pro": policy.Must("10/1m")}},
	{Name: "write", Limit: policy.Must("1000/1m"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"pro": policy.Must("10/1m")}}}},
	{Name: "sell", Group: "shop", Limit: policy.Must("deals: 20/1m cost 2, day: 5000/1d")},
	{Name: "buy", Group: "shop", Limit: policy.Must("deals: 10/1m")},
}}

// An operator tries a limit below a live one. A count that fitted before the trial is
// reported and goes through, and one that did not fit is still an error.
//
// Each edit is the name, the tier, the limit and the mode of "guards limits set", or
// unset and a name.
func TestALowerLimitThatIsTriedAfterALiveOneRefusesNoCount(t *testing.T) {
	const post, write, pro = `"activity":"post"`, `"activity":"write","subjects":{"room":"r"}`, `,"tier":"pro"`
	for name, tt := range map[string]struct {
		mode  string
		edits []string
		event string
		fits  int // the highest count that is no error, and above the limit
	}{
		"the limit before":                       {edits: []string{"post,,50/1m,", "post,,20/1m,shadow"}, event: post, fits: 50},
		"the limit first and then the mode":      {edits: []string{"post,,50/1m,", "post,,,shadow", "post,,20/1m,"}, event: post, fits: 50},
		"the same limit again":                   {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,,20/1m,shadow"}, event: post, fits: 50},
		"another part changes":                   {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,pro,90/1m,", "buy,,,off"}, event: post, fits: 50},
		"a second trial":                         {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,,5/1m,"}, event: post, fits: 50},
		"a lower and a higher trial":             {edits: []string{"post,,50/1m,", "post,,5/1m,shadow", "post,,20/1m,"}, event: post, fits: 50},
		"switched off meanwhile":                 {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,,,off", "post,,,shadow"}, event: post, fits: 50},
		"lowered before the trial":               {edits: []string{"post,,50/1m,", "post,,30/1m,", "post,,20/1m,shadow"}, event: post, fits: 30},
		"lowered, and nothing else is tried":     {edits: []string{"post,,50/1m,", "post,,30/1m,", "post,,,shadow"}, event: post, fits: 30},
		"enforced between two trials":            {edits: []string{"post,,50/1m,", "post,,30/1m,shadow", "post,,,enforce", "post,,20/1m,shadow"}, event: post, fits: 30},
		"unset between two trials":               {edits: []string{"post,,50/1m,", "post,,30/1m,shadow", "unset,post", "post,,5/1m,shadow"}, event: post, fits: 10},
		"the function is in shadow mode":         {mode: live.Shadow, edits: []string{"post,,50/1m,", "post,,20/1m,", "post,,15/1m,"}, event: post, fits: 50},
		"the code's limit, if it is higher":      {edits: []string{"post,,9/1m,", "post,,5/1m,shadow"}, event: post, fits: 10},
		"a tier":                                 {edits: []string{"post,pro,50/1m,", "post,pro,20/1m,shadow"}, event: post + pro, fits: 50},
		"a tier, and not the ordinary limit":     {edits: []string{"post,pro,50/1m,", "post,pro,20/1m,shadow"}, event: post, fits: 10},
		"the ordinary limit, and not a tier":     {edits: []string{"post,,50/1m,", "post,,20/1m,shadow"}, event: post + pro, fits: 10},
		"a tier that only a live limit has":      {edits: []string{"post,new,50/1m,", "post,new,20/1m,shadow"}, event: post + `,"tier":"new"`, fits: 50},
		"such a tier is unset":                   {edits: []string{"post,,,shadow", "post,new,50/1m,", "unset,post,new"}, event: post + `,"tier":"new"`, fits: 50},
		"a tier that nothing has":                {edits: []string{"post,,50/1m,", "post,,20/1m,shadow"}, event: post + `,"tier":"none"`, fits: 50},
		"a subject":                              {edits: []string{"write/room,,50/1m,", "write,,,shadow", "write/room,,20/1m,"}, event: write, fits: 50},
		"a tier of a subject":                    {edits: []string{"write/room,pro,50/1m,", "write,,,shadow", "write/room,pro,20/1m,"}, event: write + pro, fits: 50},
		"a subject lowered before the trial":     {edits: []string{"write/room,,50/1m,", "write/room,,30/1m,", "write,,,shadow", "write/room,,20/1m,"}, event: write, fits: 30},
		"a limit of a group":                     {edits: []string{"shop.deals,,50/1m,", "buy,,,shadow", "shop.deals,,20/1m,"}, event: `"activity":"buy"`, fits: 50},
		"a limit of a group, with a cost":        {edits: []string{"shop.deals,,100/1m,", "sell,,,shadow", "shop.deals,,20/1m,"}, event: `"activity":"sell"`, fits: 50},
		"an activity's own instead of a group's": {edits: []string{"shop.deals,,50/1m,", "buy,,deals: 20/1m,shadow"}, event: `"activity":"buy"`, fits: 50},
	} {
		t.Run(name, func(t *testing.T) {
			withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
				b.Guard, b.Mode = tried, tt.mode
				b.Live.Guards = limits.Guards{tried}
				for _, text := range tt.edits {
					s.edit(t, text)
				}
				b.wantFits(tt.event, tt.fits)
			})
		})
	}
}

// edit changes the settings as TestALowerLimitThatIsTriedAfterALiveOneRefusesNoCount
// writes it.
func (s *settings) edit(t *testing.T, text string) {
	t.Helper()
	f := append(strings.Split(text, ","), "", "")
	err := liveedit.Edit(t.Context(), s, limits.Guards{tried}, liveedit.Change{}, func(d liveedit.Draft) (liveedit.Draft, error) {
		if f[0] == "unset" {
			return d.Unset(f[1], f[2])
		}
		return d.Set(f[0], f[1], f[2], f[3]), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// wantFits follows the settings, and checks that this count is the highest that is no
// error.
func (b *bench) wantFits(event string, count int) {
	b.t.Helper()
	testkit.OK(b.t, b.Live.Read(b.t.Context()))
	ask := func(count int) (fields, error) { return b.ask(fmt.Sprintf(`{%s,"count":%d}`, event, count)) }
	if got, err := ask(count); err != nil || got["allowed"] != true {
		b.t.Errorf("a count of %d: %v, %v, want it allowed", count, got, err)
	}
	if got, err := ask(count + 1); !errors.As(err, new(*input.ValidationError)) {
		b.t.Errorf("a count of %d: %v, %v, want a ValidationError", count+1, got, err)
	}
}

// What an older command or a person changes in the document alone ends a trial, and text
// that can't be read is no trial. The live limits are followed all the same.
func TestATrialEndsWithTheLimitThatIsTried(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*settings)
		fits   int
	}{
		"nothing":                {func(*settings) {}, 50},
		"an older command":       {func(s *settings) { s.Document = []byte(`{"activities":{"post":{"limit":"15/1m","mode":"shadow"}}}`) }, 15},
		"and back again":         {func(s *settings) { s.Document = []byte(`{"activities":{"post":{"limit":"20/60s","mode":"shadow"}}}`) }, 50},
		"an older command, mode": {func(s *settings) { s.Document = []byte(`{"activities":{"post":{"limit":"20/1m","mode":"enforce"}}}`) }, 20},
		"not JSON":               {func(s *settings) { s.Trials = []byte(`{`) }, 20},
		"of another kind":        {func(s *settings) { s.Trials = []byte(`{"post":{"":{"of":"20/1m","before":"log 50/1m"}}}`) }, 20},
		"of no limit":            {func(s *settings) { s.Trials = []byte(`{"post":{"":{"of":"20/1m","before":""}}}`) }, 20},
		"with more members":      {func(s *settings) { s.Trials = []byte(`{"post":{"":{"of":"20/1m","before":"50/1m","until":9}}}`) }, 50},
	} {
		t.Run(name, func(t *testing.T) {
			withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
				b.guarding(tried)
				s.edit(t, "post,,50/1m,")
				s.edit(t, "post,,20/1m,shadow")
				if tt.change(s); strings.Contains(string(s.Document), "50/1m") {
					t.Errorf("the document, which older code reads, is %s", s.Document)
				}
				s.Version++
				b.wantFits(`"activity":"post"`, tt.fits)
			})
		})
	}
}
