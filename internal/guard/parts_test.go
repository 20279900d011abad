package guard_test

import (
	"fmt"
	"testing"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
)

// of returns a guard whose only activity, act, has these limits of the user, the room and
// the tenant; an empty one is left out.
func of(user, room, tenant string) limits.Guard {
	a := limits.Activity{Name: "act", Limit: policy.Must(user)}
	for i, text := range []string{room, tenant} {
		if text != "" {
			a.Subjects = append(a.Subjects, limits.Subject{Name: []string{"room", "tenant"}[i], Limit: policy.Must(text)})
		}
	}
	return limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{a}}
}

const both = `"activity":"act","subjects":{"room":"r","tenant":"t"}`

// HeldUntil is when the first of the logs stops to count the action, no matter whose log it
// is. From then on, not all of them limit the action any longer.
func TestHeldUntilIsThatOfTheShortestLog(t *testing.T) {
	for _, guard := range []limits.Guard{
		of("log 9/10m", "log 9/1h", "log 9/2h"), of("log 9/1h", "log 9/10m", "log 9/2h"), of("log 9/2h", "log 9/1h", "log 9/10m"),
		of("9/1m", "log 9/10m", "log 9/1h"), of("log 9/10m", "9/1m", "9/1m"), of("9/1m", "9/1m", "log 9/10m"),
	} {
		b := newBench(t)
		b.Guard = guard
		for _, op := range []string{`"op":"check"`, `"op":"renew","at":1700000040000`} {
			got, err := b.ask(`{` + both + `,"requestId":"r",` + op + `}`)
			if err != nil || got["heldUntil"] != 1_700_000_640_000.0 {
				t.Errorf("%+v: %s: %v, %v, want 10 minutes", guard.Activities, op, got, err)
			}
		}
	}
}

// A reset clears the user alone, even if it names the subjects of the check.
func TestAResetLeavesSubjectsAlone(t *testing.T) {
	for _, event := range []string{both, `"activity":"act"`, `"activity":"act","subjects":{"tenant":"t"}`} {
		b := newBench(t)
		b.Guard = of("9/1m", "9/1m", "9/1m")
		b.mustAsk(`{` + both + `,"count":4}`)
		b.mustAsk(`{` + event + `,"op":"reset"}`)
		got := b.mustAsk(`{` + both + `,"op":"status"}`)
		for i, want := range []float64{0, 4, 4} {
			if one := got["limits"].([]any)[i].(fields); one["activityCount"] != want {
				t.Errorf("after the reset %s: %v, want %v", event, one, want)
			}
		}
	}
}

// A count is at most the lowest limit, whichever part has it, and the error names that one.
// In shadow mode it is refused by that limit, and counts nowhere.
func TestTheLowestLimitBoundsTheCount(t *testing.T) {
	for _, tt := range []struct{ user, room, tenant, of, by string }{
		{"5/1m", "9/1m", "9/1m", "the limit", "act"},
		{"9/1m", "5/1m", "9/1m", "the limit of room", "room"},
		{"9/1m", "9/1m", "5/1m", "the limit of tenant", "tenant"},
	} {
		b := newBench(t)
		b.Guard = of(tt.user, tt.room, tt.tenant)
		_, err := b.ask(`{` + both + `,"count":6}`)
		if want := "count is 6, want at most 5, " + tt.of + ": waiting would never help, but partial grants what fits"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		b.mustAsk(`{` + both + `,"count":5}`)
	}
	for i, by := range []string{"act", "room", "tenant"} {
		withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
			b.Guard = of("9/1m", "9/1m", "9/1m")
			b.Live.Guards = limits.Guards{b.Guard}
			name := []string{"act", "act/room", "act/tenant"}[i]
			tried := map[string]live.Override{"act": {Mode: "shadow"}}
			tried[name] = live.Override{Limit: "5/1m", Mode: tried[name].Mode}
			s.Stored, _ = live.Settings{Activities: tried}.Stored(1)
			if err := b.Live.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := b.mustAsk(`{` + both + `,"count":6}`); got["reason"] != "shadow" || got["limitedBy"] != by || got["limit"] != 5.0 {
				t.Errorf("%v, want shadow by %s", got, by)
			}
			for _, one := range b.mustAsk(`{` + both + `,"op":"status"}`)["limits"].([]any) {
				if one.(fields)["activityCount"] != 0.0 {
					t.Errorf("a count of 6 under 5/1m of %s: %v is counted", by, one)
				}
			}
		})
	}
}

// An optional subject that is left out changes nothing for those after it.
func TestASubjectBehindOneThatIsLeftOut(t *testing.T) {
	b := newBench(t)
	b.Guard = of("9/1m", "8/1m", "4/1m")
	b.Guard.Activities[0].Subjects[0].Optional = true
	for i := range 5 {
		got := b.mustAsk(`{"activity":"act","subjects":{"tenant":"t"}}`)
		if fmt.Sprint(got["allowed"]) != fmt.Sprint(i < 4) {
			t.Errorf("check %d: %v", i+1, got)
		}
	}
	b.Mode = Shadow
	if _, err := b.ask(`{"activity":"act","subjects":{"tenant":"t2"},"count":5}`); err == nil {
		t.Error("a count of 5 is above the limit of the tenant in the code, and is no error")
	}
}
