package ratelimit_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// newCached makes a limiter with a cache on a store that counts what it is asked.
func newCached(faults ...fault) (*Limiter, *faulty) {
	f := &faulty{Store: new(memstore.Store), faults: faults}
	return &Limiter{Store: f, Timeout: time.Second, Cache: NewCache(2)}, f
}

func TestRefusalsAreGivenFromMemoryForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(pass)
		var r ids
		ask := func(r Request, allowed bool, requests int) {
			t.Helper()
			d, err := l.Check(t.Context(), r)
			if err != nil || d.Allowed != allowed || d.Requests != requests {
				t.Errorf("Check = %+v, %v, want allowed %v with %d requests", d, err, allowed, requests)
			}
		}
		first := r.next(2)
		ask(first, true, 1)
		ask(r.next(2), false, 0) // refused by what the first brought back
		ask(r.next(1), true, 1)  // fits: the store decides, never the cache
		ask(r.next(1), false, 0)
		ask(first, true, 1) // a repeat of what is counted is no refusal
		premium := r.next(1)
		premium.Policy = FixedWindow{Limit: 4, Window: time.Minute}
		ask(premium, true, 1)
		time.Sleep(time.Second)
		ask(r.next(1), false, 0)
		time.Sleep(time.Millisecond)
		ask(r.next(1), false, 1)
		if store.sent != 5 {
			t.Errorf("the store was asked %d times, want 5", store.sent)
		}
	})
}

func TestRefusalFromMemoryEndsWithTheWindow(t *testing.T) {
	c := &clock{}
	l, _ := newCached(pass)
	l.Now = c.now
	var r ids
	c.at(59500 * time.Millisecond)
	for _, step := range []struct {
		at      time.Duration
		allowed bool
	}{
		{59500 * time.Millisecond, true},
		{59999 * time.Millisecond, false},
		{60 * time.Second, true},
		{59600 * time.Millisecond, false},
	} {
		c.at(step.at)
		d, err := l.Check(t.Context(), r.next(3))
		if err != nil || d.Allowed != step.allowed {
			t.Errorf("at %v: %+v, %v, want allowed %v", step.at, d, err, step.allowed)
		}
	}
}

// An answer that was under way while this instance released says nothing any
// more: it must not refuse what the release made room for.
func TestARefusalFromBeforeAReleaseIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(pass)
		var r ids
		first := r.next(3)
		d, err := l.Check(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		store.faults = []fault{func(_ context.Context, perform func() error) error {
			err := perform()
			time.Sleep(100 * time.Millisecond) // the answer's way back
			return err
		}, pass}
		var wg sync.WaitGroup
		refused := r.next(1)
		wg.Go(func() {
			if d, err := l.Check(t.Context(), refused); err != nil || d.Allowed {
				t.Errorf("Check = %+v, %v, want it refused", d, err)
			}
		})
		synctest.Wait()
		first.At = d.At
		if d, err := l.Release(t.Context(), first); err != nil || d.Used != 0 {
			t.Errorf("Release = %+v, %v", d, err)
		}
		wg.Wait()
		if d, err := l.Check(t.Context(), r.next(3)); err != nil || !d.Allowed {
			t.Errorf("Check after a release = %+v, %v, want it allowed", d, err)
		}
	})
}

// held is a fault that performs and holds the answer back for d.
func held(d time.Duration) fault {
	return func(_ context.Context, perform func() error) error {
		err := perform()
		time.Sleep(d)
		return err
	}
}

// An answer to a check under way when its activity was reset, or somebody
// else's was, says what was counted, and refuses nothing.
func TestAnswersThatCrossAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(pass)
		var r ids
		reset := func(user string) {
			t.Helper()
			other := r.next(1)
			other.UserID = user
			store.faults = []fault{pass}
			if _, err := l.Reset(t.Context(), other); err != nil {
				t.Error(err)
			}
		}
		for _, user := range []string{"somebody else", "u"} {
			reset("u")
			store.faults = []fault{held(100 * time.Millisecond)}
			var wg sync.WaitGroup
			wg.Go(func() {
				if d, err := l.Check(t.Context(), r.next(3)); err != nil || !d.Allowed {
					t.Errorf("Check = %+v, %v", d, err)
				}
			})
			synctest.Wait()
			reset(user)
			wg.Wait()
			switch d, err := l.Check(t.Context(), r.next(1)); {
			case err != nil, d.Allowed != (user == "u"), d.Requests != 0 && user != "u":
				t.Errorf("after a reset of %s: %+v, %v", user, d, err)
			}
			store.faults = []fault{refuse}
			if d, err := l.Check(t.Context(), r.next(3)); err != nil || d.Allowed {
				t.Errorf("in an outage after a reset of %s: %+v, %v, want what was answered to count", user, d, err)
			}
			reset("u")
		}
	})
}

// Of two answers that overtake each other the one that knows more is kept.
func TestAnswersInTheWrongOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(held(200*time.Millisecond), pass)
		var r ids
		early, late := r.next(1), r.next(2)
		var wg sync.WaitGroup
		wg.Go(func() {
			if d, err := l.Check(t.Context(), early); err != nil || d.Used != 1 {
				t.Errorf("Check = %+v, %v", d, err)
			}
		})
		synctest.Wait()
		time.Sleep(time.Millisecond)
		if d, err := l.Check(t.Context(), late); err != nil || d.Used != 3 {
			t.Errorf("Check = %+v, %v", d, err)
		}
		wg.Wait()
		store.faults = []fault{refuse}
		if d, err := l.Check(t.Context(), r.next(1)); err != nil || d.Allowed || d.Used != 3 {
			t.Errorf("in an outage: %+v, %v, want the three that are counted", d, err)
		}
	})
}

// The second counts from when the store was asked, however late it answered.
func TestALateRefusalIsNotTrustedLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newCached(pass, held(1600*time.Millisecond), pass)
		l.Timeout = 5 * time.Second
		var r ids
		for i, pause := range []time.Duration{1001 * time.Millisecond, time.Millisecond, 0} {
			if d, err := l.Check(t.Context(), r.next(3)); err != nil || d.Requests != 1 {
				t.Errorf("check %d: %+v, %v, want the store asked", i, d, err)
			}
			time.Sleep(pause)
		}
	})
}

// A release or reset that nobody answered may have made room all the same; one
// that was answered is known also in an outage.
func TestRefusalsAfterAReleaseOrReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(pass)
		var r ids
		first := r.next(3)
		d, err := l.Check(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		first.At = d.At
		store.faults = []fault{lose, refuse}
		if _, err := l.Release(t.Context(), first); err == nil {
			t.Error("a release that nobody answered is no error")
		}
		store.faults = []fault{pass}
		if d, err := l.Check(t.Context(), r.next(3)); err != nil || !d.Allowed {
			t.Errorf("Check = %+v, %v, want it allowed", d, err)
		}
		if _, err := l.Reset(t.Context(), first); err != nil {
			t.Error(err)
		}
		store.faults = []fault{refuse}
		if d, err := l.Check(t.Context(), r.next(3)); err != nil || !d.Allowed || d.Reason != Unavailable {
			t.Errorf("Check in an outage = %+v, %v, want it allowed", d, err)
		}
	})
}

func TestAClockThatStepsBackAsksTheStore(t *testing.T) {
	c := &clock{}
	l, store := newCached(pass)
	l.Now = c.now
	var r ids
	for _, at := range []time.Duration{30 * time.Second, 20 * time.Second} {
		c.at(at)
		if _, err := l.Check(t.Context(), r.next(3)); err != nil {
			t.Fatal(err)
		}
	}
	if store.sent != 2 {
		t.Errorf("the store was asked %d times, want twice", store.sent)
	}
}

// A grant that was made, its answer lost and the store then gone, is told as it
// was made: this much, and with its receipt.
func TestOutageAfterALostPartialGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(pass)
		var r ids
		if _, err := l.Check(t.Context(), r.next(1)); err != nil {
			t.Fatal(err)
		}
		teach := func(_ context.Context, perform func() error) error {
			_ = perform()
			store.faults = []fault{pass}
			if _, err := l.Status(t.Context(), r.next(1)); err != nil {
				t.Error(err)
			}
			store.faults = []fault{refuse}
			return errors.New("lost")
		}
		store.faults = []fault{pass, teach, refuse}
		some := r.next(3)
		some.Partial = true
		d, err := l.Check(t.Context(), some)
		if err != nil || d.Reason != Unavailable || d.Granted != 2 || d.Used != 3 || d.At == 0 {
			t.Errorf("Check = %+v, %v, want the two that were granted and a receipt", d, err)
		}
	})
}

// What this instance had seen counted, it counts on from.
func TestOutageGoesOnFromTheLastStateSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(pass)
		var r ids
		seen := r.next(1)
		for _, step := range []struct {
			fault
			Request
			allowed bool
			used    int64
		}{
			{pass, seen, true, 1},
			{refuse, r.next(1), true, 2},
			{refuse, seen, true, 2},       // a repeat is counted once, here too
			{hang, r.next(2), false, 2},   // the same policy
			{pass, r.next(1), true, 2},    // the table never saw the one admitted alone
			{refuse, r.next(1), false, 3}, // this instance did
			{refuse, r.next(1), false, 3},
		} {
			store.faults = []fault{step.fault}
			d, err := l.Check(t.Context(), step.Request)
			if err != nil || d.Allowed != step.allowed || d.Used != step.used {
				t.Fatalf("request %s: %+v, %v, want allowed %v, %d used", step.ID, d, err, step.allowed, step.used)
			}
			if alone := d.Outage != nil; (d.Reason == Unavailable) != alone {
				t.Fatalf("request %s: %+v, want unavailable where the table is away", step.ID, d)
			}
		}
		store.faults = []fault{refuse}
		if d, err := l.Status(t.Context(), r.next(1)); err != nil || d.Reason != Unavailable || d.Allowed || d.Used != 3 {
			t.Errorf("Status = %+v, %v, want it from memory", d, err)
		}
	})
}

// An attempt of unknown outcome that did count isn't counted again alone.
func TestOutageAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newCached(lose)
		var r ids
		if d, err := l.Check(t.Context(), r.next(1)); err != nil || d.Reason != Unavailable || d.Used != 1 {
			t.Fatalf("Check = %+v, %v, want it from memory", d, err)
		}
		store.faults = []fault{pass}
		if d, err := l.Check(t.Context(), r.next(1)); err != nil || d.Reason != OK || d.Used != 2 {
			t.Fatalf("Check = %+v, %v, want the one that reached the table and this", d, err)
		}
		store.faults = []fault{refuse}
		if d, err := l.Check(t.Context(), r.next(1)); err != nil || !d.Allowed || d.Used != 3 {
			t.Fatalf("Check = %+v, %v, want the third", d, err)
		}
	})
}

func TestOutageNeverMeansNoLimit(t *testing.T) {
	l, _ := newCached(deny)
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			r := Request{UserID: "u", Activity: "act", Policy: FixedWindow{Limit: 3, Window: 1000 * time.Hour}, Count: 1, ID: strconv.Itoa(i)}
			if d, err := l.Check(t.Context(), r); err == nil && d.Allowed {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 3 {
		t.Errorf("%d admitted alone, want 3", allowed.Load())
	}
}

func TestCacheDropsTheLeastRecent(t *testing.T) {
	c := NewCache(2)
	w := Write{ID: NewID("a")}
	for _, user := range []string{"a", "b", "a", "c"} {
		w.Key = Key{UserID: user}
		if _, _, err := c.Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string]int{"a": 1, "b": 0, "c": 1} {
		if item, _ := c.Read(t.Context(), Key{UserID: user}); len(item.IDs["i00"]) != want {
			t.Errorf("%s has %v, want %d ids", user, item.IDs, want)
		}
	}
}
