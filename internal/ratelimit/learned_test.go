package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// The first attempt of a decision shows one action. Then another decision shows
// that the limit is reached, and the second attempt is lost. The memory keeps
// the newer answer, although the lost attempt began later.
func TestALostAttemptDoesNotRenewAnOlderAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.Must("minute: 3/1m, day: 200/1d")
		l, store := newFaulty(pass)
		others := &Limiter{Store: store.Store}
		mustCheck(t, others, request(p, "others", 1))
		lost := func(context.Context, func() error) error {
			time.Sleep(50 * time.Millisecond)
			store.set(pass)
			mustCheck(t, others, request(p, "more", 2))
			if d, err := l.Decide(t.Context(), Status, request(p, "newer", 1)); err != nil || d.Used != 3 {
				t.Errorf("Status = %s, %v, want 3 used", inWords(d), err)
			}
			time.Sleep(50 * time.Millisecond)
			store.set(deny)
			return errors.New("connection reset")
		}
		store.set(pass, lost)
		if d := mustCheck(t, l, request(p, "a", 1)); d.Allowed || d.Used != 3 {
			t.Errorf("the decision that lost its attempt: %s, want it refused by the newer answer", inWords(d))
		}
		if d := mustCheck(t, l, request(p, "b", 1)); d.Allowed || d.Used != 3 {
			t.Errorf("in the outage: %s, want it refused", inWords(d))
		}
	})
}

// An answer is as old as the attempt that brought it, however long a later
// attempt takes. So a refusal from memory ends a second after that attempt.
func TestAnAnswerIsAsOldAsItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.Must("minute: 3/1m, day: 200/1d")
		l, store := newFaulty(held(600*time.Millisecond), deny)
		l.Timeout = 5 * time.Second
		mustCheck(t, &Limiter{Store: store.Store}, request(p, "others", 2))
		denied := request(p, "a", 1)
		denied.Fallback = false
		if d, err := l.Check(t.Context(), denied); err == nil || d.Requests != 2 {
			t.Fatalf("Check = %s after %d requests, want an error after the second", inWords(d), d.Requests)
		}
		time.Sleep(500 * time.Millisecond) // 1.1 s after the attempt that was answered
		if d := mustCheck(t, l, request(p, "b", 2)); d.Reason != Unavailable || d.Allowed {
			t.Errorf("Check = %s, want it refused as in an outage", inWords(d))
		}
	})
}

// An item that cannot be read does not erase what was known. An outage that
// follows goes on from the last state that could be read.
func TestAnUnreadableAnswerErasesNothing(t *testing.T) {
	for verb := range 3 {
		onEachSubject(t, func(t *testing.T, s subject) {
			p := s.policy()
			if verb == 2 && p.Queues() {
				t.Skip("a release of a place has nothing to read")
			}
			store := &spoiled{Store: new(memstore.Store)}
			c := newClock()
			broken := &faulty{Store: store, faults: []fault{pass}}
			l := &Limiter{Store: broken, Timeout: time.Second, Memory: NewMemory(mib), Now: c.now}
			full := request(p, "full", min(p.Max(), remaining(p)))
			full.At = mustCheck(t, l, full).At
			if rest := remaining(p) - full.Count; rest > 0 {
				for i := range rest {
					mustCheck(t, l, request(p, string(rune('a'+i)), 1))
				}
			}
			was := mustDo(t, l, Status, request(p, "x", 1))
			store.attrs = attributesOf(p)
			c.at(1100 * time.Millisecond) // the memory refuses no longer
			r := full
			r.Fallback = false
			if verb == 0 {
				r.ID = "another"
			}
			if _, err := verbs(l)[verb](t.Context(), r); err == nil {
				t.Errorf("verb %d of an unreadable item returns no error", verb)
			}
			broken.set(deny)
			if d := mustDo(t, l, Status, request(p, "x", 1)); d.Allowed != was.Allowed || d.Used != was.Used {
				t.Errorf("verb %d, then an outage: %s, want as before: %s", verb, inWords(d), inWords(was))
			}
		})
	}
}

// A release whose update cannot hold in the item it was planned for ends at once:
// the item is not what it reads as.
func TestAReleaseThatCannotHoldEnds(t *testing.T) {
	store := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
	c := newClock()
	l := &Limiter{Store: store, Timeout: time.Second, Memory: NewMemory(mib), Now: c.now}
	r := request(policy.Must("bucket 10/1m"), "a", 1)
	r.At = start.UnixMilli()
	_, done, err := store.Store.Update(t.Context(), Write{
		Key: Key{UserID: "u", Activity: "act"}, ID: NewID("a"), Now: r.At,
		Update: policy.Update{Acts: []policy.Act{ // no interval, which every bucket has
			{Verb: policy.Set, Attr: "tat", Value: r.At + 6000}, {Verb: policy.Set, Attr: "since", Value: r.At},
		}},
	})
	if err != nil || !done {
		t.Fatal(done, err)
	}
	_, err = l.Decide(t.Context(), Release, r)
	if e, ok := errors.AsType[*StoreError](err); !ok || e.Failure != Unreadable {
		t.Errorf("Release: %v, want unreadable", err)
	}
	if store.count() > 2 || l.CircuitOpen() {
		t.Errorf("%d requests, circuit open: %v, want at most 2 and closed", store.count(), l.CircuitOpen())
	}
}
