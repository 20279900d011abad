package ratelimit_test

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
)

// A check is under way while its activity is released or reset, or another user's activity is
// reset. Its answer, which shows what was counted before, must not refuse what the release or
// the reset has made possible.
func TestAnswersThatCrossAReleaseOrReset(t *testing.T) {
	for name, tt := range map[string]struct {
		op   Op
		user string
		room bool // there is room after it
	}{"a release": {Release, "u", true}, "a reset": {Reset, "u", true}, "a reset of somebody else": {Reset, "somebody else", false}} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			var r ids
			first := r.next(3)
			first.At = mustCheck(t, l, first).At
			time.Sleep(2 * time.Second)
			store.set(held(100*time.Millisecond), pass)
			var wg sync.WaitGroup
			refused := r.next(1)
			wg.Go(func() {
				if d, err := l.Check(t.Context(), refused); err != nil || d.Allowed {
					t.Errorf("%s: %+v, %v, want the check before it refused", name, d, err)
				}
			})
			synctest.Wait()
			first.UserID = tt.user
			if d := mustDo(t, l, tt.op, first); d.Used != 0 {
				t.Errorf("%s: %+v, want nothing used", name, d)
			}
			wg.Wait()
			if d := mustCheck(t, l, r.next(3)); d.Allowed != tt.room || !tt.room && d.Requests != 0 {
				t.Errorf("after %s: %+v, want it allowed: %v", name, d, tt.room)
			}
		})
	}
}

// After a release or reset of unknown outcome there may be room, so the store is
// asked. After an answered reset, memory knows of the room in an outage too.
func TestRefusalsAfterAReleaseOrReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newFaulty(pass)
		var r ids
		first := r.next(3)
		first.At = mustCheck(t, l, first).At
		store.set(lose, refuse)
		if _, err := l.Decide(t.Context(), Release, first); err == nil {
			t.Error("a release without an answer returns no error")
		}
		time.Sleep(5 * time.Second) // the circuit breaker's
		store.set(pass, lose, pass) // the probe, and then the release
		mustDo(t, l, Release, first)
		if d := mustCheck(t, l, r.next(3)); !d.Allowed {
			t.Errorf("Check = %+v, want it allowed", d)
		}
		mustDo(t, l, Reset, first)
		store.set(refuse)
		if d := mustCheck(t, l, r.next(3)); !d.Allowed || d.Reason != Unavailable {
			t.Errorf("Check in an outage = %+v, want it allowed", d)
		}
	})
}

// The clock steps back, and then an activity is released or reset without an answer. What was
// seen before has a later time, and refuses nothing any more.
func TestAReleaseOrResetAfterTheClockSteppedBack(t *testing.T) {
	for _, op := range []Op{Release, Reset} {
		l, store, c := onClock(pass)
		l.NewBudget = noPauses(1)
		var r ids
		first := r.next(3)
		first.At = mustCheck(t, l, first).At
		c.at(-500 * time.Millisecond)
		store.set(lose, pass)
		if _, err := l.Decide(t.Context(), op, first); err == nil {
			t.Errorf("%s: no error, want the lost answer", op)
		}
		c.at(100 * time.Millisecond)
		if d := mustCheck(t, l, r.next(1)); d.Reason == Limited && d.Requests == 0 { // the circuit can be open
			t.Errorf("%s: %s without a request, want no refusal by what was seen", op, inWords(d))
		}
	}
}

// Without a memory every decision asks the store, and an outage is an error.
func TestALimiterWithoutAMemory(t *testing.T) {
	l, store := newFaulty(pass)
	l.Memory = nil
	var r ids
	for i := range 3 {
		if d := mustCheck(t, l, r.next(3)); d.Allowed != (i == 0) || d.Requests != 1 {
			t.Errorf("check %d: %+v, want one request", i, d)
		}
	}
	store.set(deny)
	for _, op := range []Op{Check, Status} {
		if d, err := l.Decide(t.Context(), op, r.next(1)); err == nil {
			t.Errorf("in an outage: %+v, want an error", d)
		}
	}
}

// While Lambda freezes a process, the monotonic clock can stand still. A refusal from before
// the freeze must not be given after it, so times are compared by the clock on the wall.
func TestTimesAreOfTheWallClock(t *testing.T) {
	for _, now := range []func() time.Time{nil, time.Now} {
		if got := (&Limiter{Now: now}).Clock(); got != got.Round(0) {
			t.Errorf("decisions count by %v, want a time without a monotonic clock", got)
		}
	}
}

// 10,000 users act up to their limit in an outage. The memory takes at most
// 64 MB, by its own account and by the runtime's.
func TestMemoryIsBounded(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		before := testkit.HeapInUse()
		l, _, _ := onClock(deny)
		l.Memory = NewMemory(DefaultMemory)
		p := s.policy()
		for i := range remaining(p) { // one user acts alone until the limit
			if d := mustCheck(t, l, request(p, strconv.FormatInt(i, 10), 1)); !d.Allowed {
				t.Fatalf("action %d: %s, want it allowed", i, inWords(d))
			}
		}
		window, _ := p.Item(start.UnixMilli())
		full := l.Memory.Recall(Key{UserID: "u", Activity: "act", Window: window})
		for user := range repeats(10_000) {
			k := Key{UserID: fmt.Sprintf("%036d", user), Activity: "act", Window: window}
			l.Memory.Change(k, func(Known) Known { return Known{Seen: own(full.Seen), Fallback: own(full.Fallback)} })
		}
		grown := testkit.HeapInUse() - before
		counted := int64(l.Memory.Bytes())
		t.Logf("%.1f MB in the heap, %.1f MB by its own account", float64(grown)/mib, float64(counted)/mib)
		if counted > DefaultMemory || grown > DefaultMemory {
			t.Errorf("the users take %d bytes, %d by its own account, want at most %d", grown, counted, DefaultMemory)
		}
		if grown > counted+mib || grown < counted/2 {
			t.Errorf("the users take %d bytes, and the memory's account says %d", grown, counted)
		}
		runtime.KeepAlive(l)
	})
}

// own returns a copy of i that shares no memory with it.
func own(i Item) Item {
	i.State, i.IDs = slices.Clone(i.State), slices.Clone(i.IDs)
	for n, a := range i.State {
		i.State[n].Name = AttributeName([]byte(a.Name))
	}
	for n, set := range i.IDs {
		i.IDs[n].Elements = slices.Clone(set.Elements)
	}
	return i
}
