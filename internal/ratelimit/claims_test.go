package ratelimit_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// busy has a room with one place, which somebody else has.
type busy struct {
	*testing.T

	store *memstore.Store
	clock *clock
	mine  []Part
	other []Part
	taken Decision // the other's check
}

func newBusy(t *testing.T) *busy {
	b := &busy{T: t, store: new(memstore.Store), clock: newClock()}
	b.mine, b.other = message("u", "r", "a", "2/1d", "1/1d"), message("v", "r", "b", "2/1d", "1/1d")
	b.with(false, false)
	b.taken = mustDoAll(t, b.on(b.store), Check, b.other, 0, "the only place in the room")
	return b
}

func (b *busy) on(s Store) *Limiter {
	return &Limiter{Store: s, Now: b.clock.now, Memory: NewMemory(mib), NewBudget: noPauses(3)}
}

// leave frees the place in the room.
func (b *busy) leave() {
	mustDoAll(b.T, b.on(b.store), Release, b.other, b.taken.At, "the other leaves")
}

// attempt sends the request, and moves the clock, so that attempts differ in their time.
func (b *busy) attempt(s Store) (Decision, error) {
	b.clock.add(3 * time.Millisecond)
	return b.on(s).DecideAll(b.Context(), Check, b.mine, false)
}

// refused is an attempt that this limit refuses.
func (b *busy) refused(s Store, by, what string) Decision {
	b.Helper()
	b.clock.add(3 * time.Millisecond)
	return mustRefuse(b.T, b.on(s), b.mine, by, what)
}

// stopped starts an attempt, which stops before it gives back. Finish lets it go on to its end.
func (b *busy) stopped() (finish func()) {
	b.Helper()
	reached, resume, ended := make(chan bool), make(chan bool), make(chan bool)
	first := beforeEach(b.store, once(givesBack, func() { close(reached); <-resume }))
	go func() {
		defer close(ended)
		if d, err := b.attempt(first); err != nil || d.Allowed {
			b.Errorf("the first attempt: %+v, %v", d, err)
		}
	}()
	select {
	case <-reached:
	case <-ended:
		b.Fatal("the first attempt gives nothing back")
	}
	return func() { close(resume); <-ended }
}

// with sets who may be decided alone, and whose ids are the guard's own.
func (b *busy) with(alone, fresh bool) {
	for i := range b.mine {
		b.mine[i].Fallback, b.mine[i].Fresh = alone, fresh
	}
}

// wants compares what the items count, once everything has arrived.
func (b *busy) wants(user, room int64) {
	b.Helper()
	mustCount(b.T, b.store, b.clock, "in the end", b.mine, user, room)
}

// A request is sent twice. The first attempt counts the user, and the room refuses it. Then
// a place becomes free, and the second attempt finds the user's id and is admitted.
func TestARepeatInABusyRoom(t *testing.T) {
	t.Run("before the first attempt gives back", func(t *testing.T) {
		b := newBusy(t)
		first := beforeEach(b.store, once(givesBack, func() {
			b.leave()
			if d, err := b.attempt(b.store); err != nil || !d.Allowed || d.Reason != OK || d.At != 0 || d.Requests != 3 {
				t.Errorf("the second attempt: %+v, %v, want ok without a receipt: two updates and a mark", d, err)
			}
		}))
		b.refused(first, "room", "the first attempt")
		b.wants(1, 1)
	})
	t.Run("and the first attempt gives back before the mark", func(t *testing.T) {
		b := newBusy(t)
		finish := b.stopped()
		b.leave()
		if d, err := b.attempt(beforeEach(b.store, once(marks, finish))); err != nil || !d.Allowed || d.Reason != OK || d.At == 0 || d.Requests != 4 {
			t.Errorf("the second attempt: %+v, %v, want ok with a receipt, because it has counted both", d, err)
		}
		b.wants(1, 1)
	})
	t.Run("and meanwhile the user is full", func(t *testing.T) {
		b := newBusy(t)
		finish := b.stopped()
		b.leave()
		second := beforeEach(b.store, once(marks, func() {
			finish()
			full := b.mine[0].Request
			full.ID, full.Count = "others", 2
			mustCheck(t, b.on(b.store), full)
		}))
		b.refused(second, "write", "the second attempt, while the user's own limit is full")
		b.wants(2, 0)
	})
}

// A mark has no answer. The next one is the same. If none is answered, that part is an
// outage. With Fallback, the memory decides. Otherwise the answer is an error, and what this
// decision has counted is given back.
func TestAMarkWithoutAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name       string
		lost       int
		alone      bool
		want       string
		user, room int64
	}{
		{"once", 1, false, "ok", 1, 1},
		{"always, and the memory decides", 9, true, "unavailable", 1, 1},
		{"always, and nobody decides", 9, false, "error", 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBusy(t)
			_, _ = b.attempt(beforeEach(b.store, fails(givesBack, always, errors.New("the process dies"))))
			b.leave()
			b.with(tt.alone, false)
			d, err := b.attempt(beforeEach(b.store, fails(marks, tt.lost, errors.New("timeout"))))
			got := string(d.Reason)
			if err != nil {
				got = "error"
			}
			if got != tt.want || err == nil && !d.Allowed {
				t.Errorf("%+v, %v, want %s", d, err, tt.want)
			}
			b.wants(tt.user, tt.room)
		})
	}
}

// A repeat of an admitted check marks each part that it finds. A check of an activity with
// subjects marks, too, if it names none. Any other repeat costs one request.
func TestWhatARepeatCosts(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		l := &Limiter{Store: store, Now: c.now, Timeout: 10 * time.Second}
		parts := message("u", "r", "a", "10/1m", "30/1m")
		for i, want := range []struct {
			reason   Reason
			requests int
		}{{OK, 2}, {Duplicate, 4}, {Duplicate, 4}} {
			if d, err := l.DecideAll(t.Context(), Check, parts, false); err != nil || d.Reason != want.reason || d.Requests != want.requests {
				t.Errorf("check %d of two parts: %+v, %v, want %+v", i, d, err, want)
			}
		}
		for _, shared := range []bool{false, true} {
			r := parts[0].Request
			r.ID, r.Shared = fmt.Sprint("alone", shared), shared
			mustCheck(t, l, r)
			want := 1
			if shared {
				want = 2
			}
			if d := mustCheck(t, l, r); d.Reason != Duplicate || d.Requests != want {
				t.Errorf("a repeat of one part, shared %v: %+v, want %d requests", shared, d, want)
			}
		}
		if d, err := l.DecideAll(t.Context(), Status, parts, false); err != nil || d.Requests != 2 {
			t.Errorf("a status marks nothing: %+v, %v", d, err)
		}
	})
}

// In an outage, a full room refuses. What the memory counted for the user is given back in
// the memory.
func TestARefusalInAnOutageGivesBackInMemory(t *testing.T) {
	c := newClock()
	down := beforeEach(new(memstore.Store), fails(anyWrite, always, errors.New("down")))
	l := &Limiter{Store: down, Now: c.now, Memory: NewMemory(mib), NewBudget: noPauses(1)}
	mustDoAll(t, l, Check, message("v", "full", "a", "log 5/12h", "1/1d"), 0, "the only place in the room")
	for i := range 6 {
		c.add(time.Second)
		mustRefuse(t, l, message("u", "full", fmt.Sprint("r", i), "log 5/12h", "1/1d"), "room", fmt.Sprint("check ", i))
	}
	d := mustDoAll(t, l, Check, message("u", "empty", "r", "log 5/12h", "1/1d"), 0, "in an empty room")
	if d.Reason != Unavailable || d.Each[0].Used != 1 {
		t.Errorf("%+v, want 1 used", d)
	}
	repeat := message("u", "empty", "r", "log 5/12h", "1/1d")
	mustDoAll(t, l, Check, repeat, 0, "a repeat in the outage")
	refused := []Part{repeat[0], message("u", "full", "r", "log 5/12h", "1/1d")[1]}
	mustRefuse(t, l, refused, "room", "a repeat in the full room")
	if used := mustDo(t, l, Status, message("u", "full", "status", "log 5/12h", "1/1d")[0].Request).Used; used != 1 {
		t.Errorf("%d are used, want what the first decision counted", used)
	}
}

// The answer to the user's update is lost, and the check was counted by another attempt. The
// first one finds it, can't tell whose it is, and leaves it.
func TestAnUnknownOutcomeIsNotGivenBack(t *testing.T) {
	b := newBusy(t)
	other := beforeEach(b.store, once(inRoom, func() {
		first := beforeEach(b.store, fails(anyWrite, 1, errors.New("timeout")))
		b.refused(first, "room", "the attempt with a lost answer")
		b.leave()
	}))
	if d, err := b.attempt(other); err != nil || !d.Allowed {
		t.Errorf("the attempt that counted: %+v, %v", d, err)
	}
	b.wants(1, 1)
}

// Two attempts are refused by the room. The second one has found what the first one counted,
// and leaves no mark, so the first one gives it back.
func TestARefusedRepeatMarksNothing(t *testing.T) {
	b := newBusy(t)
	first := beforeEach(b.store, once(givesBack, func() {
		if d := b.refused(b.store, "room", "the second attempt"); d.Requests != 2 {
			t.Errorf("the second attempt: %+v, want a refusal after two requests", d)
		}
	}))
	b.refused(first, "room", "the first attempt")
	b.wants(0, 1)
}

// The user's item is throttled, so the memory decides that part. The room refuses the first attempt.
// Then a place becomes free, and the second attempt of the same process finds the user's id in
// the memory and is admitted. The first one leaves it there.
func TestAMarkInMemory(t *testing.T) {
	b := newBusy(t)
	var l *Limiter
	second := once(inRoom, func() {
		b.leave()
		b.clock.add(3 * time.Millisecond)
		mustDoAll(t, l, Check, b.mine, 0, "the second attempt")
	})
	l = b.on(afterEach(throttling(b.store, "u"), func(w Write, _ bool) { _ = second(w) }))
	b.with(true, false)
	mustRefuse(t, l, b.mine, "room", "the first attempt")
	next := b.mine[0].Request
	next.ID = "next"
	if d := mustDo(t, l, Status, next); d.Used != 1 {
		t.Errorf("%+v, want 1 used", d)
	}
}
