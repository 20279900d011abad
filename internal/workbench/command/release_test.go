package command

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// The holder of a slot is gone. An operator sees the slot and frees it.
func TestReleaseFreesASlot(t *testing.T) {
	p := ofContent(t)
	p.fails("release export --user u1", wrongUse, "guards: u1 has no open slot of export in the table\n")
	gone := p.ask(guard.Request{UserID: "u1", Activity: "export", Op: guards.Check, Count: 1, RequestID: "gone"})
	p.now = p.now.Add(time.Minute + 5*time.Millisecond)
	works := p.ask(guard.Request{UserID: "u1", Activity: "export", Op: guards.Check, Count: 1, RequestID: "works"})
	p.prints("status --user u1", `u1 in the table:
ACTIVITY             USED  LEFT  WAIT
create_post, posts   0/10  10
create_post, writes  0/20  20
add_comment, writes  0/40  40
export               2/3   1

SLOTS OF  COUNT  AT                        HELD UNTIL
export    1      2023-11-14T22:14:18.000Z  2023-11-14T22:24:18.000Z
export    1      2023-11-14T22:15:18.005Z  2023-11-14T22:25:18.005Z
`)
	p.contains("status --user u1 --json", `"at": 1700000058000,`, `"heldUntil": 1700000658000,`)
	p.fails("release export --user u1", wrongUse, "guards: several slots are open: give --at 2023-11-14T22:14:18.000Z, or 2023-11-14T22:15:18.005Z\nguards: guards status --user u1 shows until when each is held\n")
	p.fails("release export --user u1 --at 2023-11-14T22:14:18.001Z", wrongUse, "no open slot has the time 2023-11-14T22:14:18.001Z, want --at 2023-11-14T22:14:18.000Z, or ")
	_, out, log := p.run("release export --user u1 --at 2023-11-14T22:14:18Z")
	const question = "Free the slot of export that u1 has taken or renewed at 2023-11-14T22:14:18.000Z, and that is held until 2023-11-14T22:24:18.000Z, in the table? [y/N] "
	if log != question || out != "export of u1: 1/3 used, 2 left, in the table; the slot of 2023-11-14T22:14:18.000Z is free\n" {
		t.Errorf("%q, %q", log, out)
	}
	renew := func(a guard.Answer) guard.Answer {
		return p.ask(guard.Request{UserID: "u1", Activity: "export", Op: guards.Renew, Count: 1, RequestID: a.RequestID, At: a.Decision.At})
	}
	for range 2 { // the item still knows the id
		if a := renew(gone); a.Allowed || a.Reason != ratelimit.Expired {
			t.Errorf("the holder renews the slot that was freed: %+v", a)
		}
	}
	if a := renew(works); !a.Allowed {
		t.Errorf("the other holder: %+v", a)
	}
	p.prints("release export --user u1 --at 1700000118005 --yes --json", `{"table":"`+p.where[5]+`","region":"us-east-1","userId":"u1","activity":"export",`+
		`"at":1700000118005,"heldUntil":1700000718005,"limit":3,"activityCount":0,"remaining":3,"waitTime":0,"resetAt":1700000118005}`+"\n")
	p.wrong(map[string]string{
		"release create_post --user u1":           "guards: create_post has no slots of a user, because none of those limits is a log\nguards: guards reset clears an activity\n",
		"release exprt --user u1":                 `guards: activity is "exprt", did you mean "export"?`,
		"release export --user u1 --at yesterday": `guards: --at is "yesterday", want a time such as`,
	})
}

// A renewing reader renews a slot before it answers a question with yes.
type renewing struct {
	renew  func()
	answer io.Reader
}

func (r *renewing) Read(b []byte) (int, error) {
	r.renew()
	return r.answer.Read(b)
}

// While the operator thinks about the question, the holder renews the slot. It stays.
func TestReleaseOfASlotThatIsRenewedMeanwhile(t *testing.T) {
	p := ofContent(t)
	held := p.ask(guard.Request{UserID: "u1", Activity: "export", Op: guards.Check, Count: 1, RequestID: "r"})
	p.now = p.now.Add(time.Minute)
	p.in = &renewing{answer: strings.NewReader("y\n"), renew: func() {
		if a := p.ask(guard.Request{UserID: "u1", Activity: "export", Op: guards.Renew, Count: 1, RequestID: "r", At: held.Decision.At}); !a.Allowed {
			t.Errorf("%+v", a)
		}
	}}
	p.fails("release export --user u1", wrongUse, "guards: the slot is renewed, released or expired")
	if a := p.ask(guard.Request{UserID: "u1", Activity: "export", Op: guards.Status, Count: 1}); a.Decision.Used != 1 {
		t.Errorf("%+v", a.Decision)
	}
}

// A log of pins can have many slots. The error lists the first ones.
func TestReleaseListsSomeOfManySlots(t *testing.T) {
	_, err := (&releaseCommand{}).choose(slices.Repeat([]slot{{At: pinned.UnixMilli()}}, 13), 0)
	if err == nil || !strings.HasPrefix(err.Error(), "several slots are open: give --at 2023-11-14T22:14:18.000Z, or ") || !strings.HasSuffix(err.Error(), "Z, or one of 3 more") {
		t.Error(err)
	}
}

// Of several limits, also of a group, only the slot of the log is freed.
func TestReleaseLeavesOtherLimitsAlone(t *testing.T) {
	p := ofContent(t)
	p.page = []guards.Guard{{Name: "exports-guard", Message: "m", Activities: []guards.Activity{
		{Name: "export", Limit: "jobs: log 6/10m cost 2, day: 9/1d", Group: "exports"},
		{Name: "preview", Limit: "jobs: log 6/10m", Group: "exports"},
	}}}
	p.ask(guard.Request{UserID: "u1", Activity: "export", Op: guards.Check, Count: 1})
	_, out, log := p.run("release export --user u1")
	if out != "export, jobs of u1: 0/3 used, 3 left, in the table; the slot of 2023-11-14T22:14:18.000Z is free\n" ||
		!strings.HasPrefix(log, "Only a slot of the log is freed: the group exports (export, preview) keeps its other counts. Free the slot") {
		t.Errorf("%q, %q", out, log)
	}
	p.prints("status --user u1", `u1 in the table:
ACTIVITY       USED  LEFT  WAIT
export, jobs   0/3   3
export, day    1/9   8
preview, jobs  0/6   6
`)
	p.ask(guard.Request{UserID: "u1", Activity: "preview", Op: guards.Check, Count: 1})
	p.fails("release export --user u1 --yes", wrongUse, "guards: the slot is renewed, released or expired, or another activity") // an export takes two
	p.prints("release preview --user u1 --yes", "preview, jobs of u1: 0/6 used, 6 left, in the table; the slot of 2023-11-14T22:14:18.000Z is free\n")
}

// The slots of a log are those that count, whatever its name and its cost.
func TestSlots(t *testing.T) {
	for text, each := range map[string]int64{"log 9/10m": 1, "day: 90/1d, jobs: log 9/10m cost 3": 3} {
		p, store := policy.Must(text), new(memstore.Store)
		key := ratelimit.Key{UserID: "u1", Activity: "export"}
		for i, after := range []time.Duration{0, 8 * time.Minute, 8 * time.Minute, 11 * time.Minute} {
			l := &ratelimit.Limiter{Store: store, Now: func() time.Time { return pinned.Add(after) }}
			if d, err := l.Check(t.Context(), ratelimit.Request{UserID: "u1", Activity: "export", Policy: p, Count: 1, ID: string(rune('a' + i))}); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		item := testkit.Must(store.Read(context.Background(), key))(t)
		second, last := pinned.Add(8*time.Minute).UnixMilli(), pinned.Add(11*time.Minute).UnixMilli()
		want := []slot{{second, second + 600_000, 2 * each}, {last, last + 600_000, each}}
		testkit.Same(t, text, want, slotsOf(p, last, item.State))
	}
	if got := slotsOf(policy.Must("10/1m"), 0, nil); got != nil {
		t.Errorf("slots of a fixed window: %v", got)
	}
	damaged := policy.State{{Name: "a0", Value: 1 << 50}, {Name: "top", Value: 3}}
	if got := slotsOf(policy.Must("log 3/10m"), pinned.UnixMilli(), damaged); len(got) != 0 {
		t.Errorf("slots that no log wrote: %v", got)
	}
}
