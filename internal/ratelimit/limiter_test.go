package ratelimit_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

var three = FixedWindow{Limit: 3, Window: time.Minute}

// start is the start of a window of a minute.
var start = time.UnixMilli(1_700_000_040_000)

const window = 28_333_334 // start's

// clock is a limiter's clock that a test sets.
type clock struct{ time.Time }

func (c *clock) at(d time.Duration) { c.Time = start.Add(d) }
func (c *clock) now() time.Time     { return c.Time }

// ids makes requests that differ in their id.
type ids struct{ last int }

func (i *ids) next(n int64) Request {
	i.last++
	return Request{UserID: "u", Activity: "act", Policy: three, Count: n, ID: strconv.Itoa(i.last)}
}

// A Decision without what each row would repeat.
var brief = cmp.Options{
	cmpopts.IgnoreFields(Decision{}, "Requests", "At", "Window"),
	cmpopts.IgnoreFields(Figures{}, "ResetAt"),
	cmpopts.EquateErrors(),
}

func TestFixedWindowTimeline(t *testing.T) {
	figures := func(used, left int64) Figures { return Figures{Used: used, Remaining: left, WindowKey: window} }
	next := func(used, left int64) Figures { return Figures{Used: used, Remaining: left, WindowKey: window + 1} }
	c := &clock{}
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	for _, step := range []struct {
		at      time.Duration
		count   int64
		partial bool
		want    Decision
	}{
		{at: 0, count: 1, want: Decision{Allowed: true, Reason: OK, Limit: 3, Figures: figures(1, 2), Granted: 1}},
		{at: 10 * time.Second, count: 3, want: Decision{Reason: Limited, Limit: 3, Figures: figures(1, 2), Wait: 50 * time.Second}},
		{at: 20 * time.Second, count: 5, partial: true, want: Decision{Allowed: true, Reason: OK, Limit: 3, Figures: figures(3, 0), Granted: 2, Wait: 40 * time.Second}},
		{at: 59 * time.Second, count: 1, want: Decision{Reason: Limited, Limit: 3, Figures: figures(3, 0), Wait: time.Second}},
		{at: 59 * time.Second, count: 1, partial: true, want: Decision{Reason: Limited, Limit: 3, Figures: figures(3, 0), Wait: time.Second}},
		{at: 59999 * time.Millisecond, count: 1, want: Decision{Reason: Limited, Limit: 3, Figures: figures(3, 0), Wait: time.Millisecond}},
		{at: 60 * time.Second, count: 1, want: Decision{Allowed: true, Reason: OK, Limit: 3, Figures: next(1, 2), Granted: 1}}, // a new window
		{at: 59 * time.Second, count: 1, want: Decision{Reason: Limited, Limit: 3, Figures: figures(3, 0), Wait: time.Second}}, // the clock stepped back
		{at: 61 * time.Second, count: 2, want: Decision{Allowed: true, Reason: OK, Limit: 3, Figures: next(3, 0), Granted: 2}},
	} {
		c.at(step.at)
		request := r.next(step.count)
		request.Partial = step.partial
		got, err := l.Check(t.Context(), request)
		if err != nil {
			t.Fatalf("at %v: Check(%d): %v", step.at, step.count, err)
		}
		if diff := cmp.Diff(step.want, got, brief); diff != "" {
			t.Fatalf("at %v: Check(%d) (-want +got):\n%s", step.at, step.count, diff)
		}
	}
}

func TestCheckRefusesWhatNeverFits(t *testing.T) {
	l := &Limiter{Store: failing{errors.New("asked")}}
	for _, r := range []Request{
		{Policy: three, ID: "a", Count: 0},
		{Policy: three, ID: "a", Count: -1},
		{Policy: three, ID: "a", Count: 4},
		{Policy: three, Count: 1},
	} {
		if d, err := l.Check(t.Context(), r); err == nil || errors.As(err, new(*StoreError)) {
			t.Errorf("Check(count %d, id %q) = %+v, %v, want an error before the store is asked", r.Count, r.ID, d, err)
		}
	}
}

func TestRepeatIsCountedOnce(t *testing.T) {
	c := &clock{}
	c.at(0)
	l := &Limiter{Store: new(memstore.Store), Now: c.now, Cache: NewCache(10)}
	var r ids
	first := r.next(2)
	check(t, l, first, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 2, Remaining: 1, WindowKey: window}, Granted: 2})
	check(t, l, r.next(1), Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Granted: 1})
	// A repeat is allowed though the limit is reached, and told the present figures.
	c.at(59 * time.Second)
	repeat := check(t, l, first, Decision{Allowed: true, Reason: Duplicate, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Granted: 2})
	if repeat.At != 0 {
		t.Errorf("a repeat has the receipt %d, want none", repeat.At)
	}
	// A refusal is not remembered: its id counts in the next window.
	refused := r.next(1)
	check(t, l, refused, Decision{Reason: Limited, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Wait: time.Second})
	c.at(60 * time.Second)
	check(t, l, refused, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 1, Remaining: 2, WindowKey: window + 1}, Granted: 1})
}

func TestReleaseGivesBackOnce(t *testing.T) {
	c := &clock{}
	c.at(time.Second)
	l := &Limiter{Store: new(memstore.Store), Now: c.now, Cache: NewCache(10)}
	var r ids
	first := r.next(3)
	first.At = check(t, l, first, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Granted: 3}).At
	check(t, l, r.next(1), Decision{Reason: Limited, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Wait: 59 * time.Second})

	back := first
	back.Count = 2
	release := func(want int64) {
		t.Helper()
		d, err := l.Release(t.Context(), back)
		if err != nil || !d.Allowed || d.Reason != OK || d.Used != want || d.Wait != 0 {
			t.Fatalf("Release = %+v, %v, want allowed, ok, %d used", d, err, want)
		}
	}
	release(1)
	release(1)
	// This instance refused a moment ago, and doesn't any more. A released id is new.
	check(t, l, r.next(1), Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 2, Remaining: 1, WindowKey: window}, Granted: 1})
	again := first
	again.Count = 1
	check(t, l, again, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Granted: 1})

	c.at(0)    // a clock behind the one that counted
	release(1) // the new one
	release(1)
	back.ID, back.Count = "3", 1
	c.at(time.Minute) // too late: the window has passed
	release(0)
	c.at(59 * time.Second)
	if d, err := l.Status(t.Context(), r.next(1)); err != nil || d.Used != 1 {
		t.Errorf("Status = %+v, %v, want the one that a late release left alone", d, err)
	}
	release(0)
}

// A receipt may be from an instance whose clock is a little ahead, and no more.
func TestReceiptFromAClockAhead(t *testing.T) {
	c := &clock{}
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	c.at(61 * time.Second)
	first := r.next(2)
	first.At = check(t, l, first, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 2, Remaining: 1, WindowKey: window + 1}, Granted: 2}).At
	c.at(59 * time.Second)
	forged := first
	forged.At = 253_402_300_799_999
	for _, step := range []struct {
		Request
		used, window int64
	}{{forged, 0, window}, {first, 0, window + 1}} {
		d, err := l.Release(t.Context(), step.Request)
		if err != nil || !d.Allowed || d.Used != step.used || d.WindowKey != step.window {
			t.Errorf("Release of %d = %+v, %v, want %d used in window %d", step.At, d, err, step.used, step.window)
		}
	}
	c.at(61 * time.Second)
	if d, err := l.Status(t.Context(), r.next(1)); err != nil || d.Used != 0 {
		t.Errorf("Status = %+v, %v, want what was released gone", d, err)
	}
	if _, err := l.Release(t.Context(), Request{Policy: three, ID: "a", Count: -1, At: 1}); err == nil {
		t.Error("a release of -1 is no error")
	}
}

func TestResetForgets(t *testing.T) {
	c := &clock{}
	c.at(0)
	l := &Limiter{Store: new(memstore.Store), Now: c.now, Cache: NewCache(10)}
	var r ids
	first := r.next(3)
	check(t, l, first, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Granted: 3})
	check(t, l, r.next(1), Decision{Reason: Limited, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Wait: time.Minute})
	d, err := l.Reset(t.Context(), r.next(1))
	if err != nil || !d.Allowed || d.Reason != OK || d.Used != 0 || d.Remaining != 3 {
		t.Fatalf("Reset = %+v, %v, want allowed, ok, nothing used", d, err)
	}
	check(t, l, first, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Granted: 3})
}

func TestStatusDecidesWithoutCounting(t *testing.T) {
	c := &clock{}
	c.at(0)
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	status := func(r Request, want Decision) {
		t.Helper()
		got, err := l.Status(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, brief); diff != "" {
			t.Fatalf("Status (-want +got):\n%s", diff)
		}
	}
	for range 2 {
		status(r.next(3), Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Remaining: 3, WindowKey: window}, Granted: 3})
	}
	first := r.next(2)
	check(t, l, first, Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 2, Remaining: 1, WindowKey: window}, Granted: 2})
	status(r.next(2), Decision{Reason: Limited, Limit: 3, Figures: Figures{Used: 2, Remaining: 1, WindowKey: window}, Wait: time.Minute})
	status(first, Decision{Allowed: true, Reason: Duplicate, Limit: 3, Figures: Figures{Used: 2, Remaining: 1, WindowKey: window}, Granted: 2})
}

func TestALoweredLimitIsNeverNegative(t *testing.T) {
	c := &clock{}
	c.at(0)
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	check(t, l, r.next(3), Decision{Allowed: true, Reason: OK, Limit: 3, Figures: Figures{Used: 3, WindowKey: window}, Granted: 3})
	lower := r.next(1)
	lower.Policy = FixedWindow{Limit: 2, Window: time.Minute}
	check(t, l, lower, Decision{Reason: Limited, Limit: 2, Figures: Figures{Used: 3, WindowKey: window}, Wait: time.Minute})
	higher := r.next(1)
	higher.Policy = FixedWindow{Limit: 4, Window: time.Minute}
	check(t, l, higher, Decision{Allowed: true, Reason: OK, Limit: 4, Figures: Figures{Used: 4, WindowKey: window}, Granted: 1})
}

func check(t *testing.T, l *Limiter, r Request, want Decision) Decision {
	t.Helper()
	got, err := l.Check(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, brief); diff != "" {
		t.Fatalf("Check (-want +got):\n%s", diff)
	}
	return got
}

// failing is a store that answers nothing but its error.
type failing struct{ err error }

func (f failing) Update(context.Context, Write) (Item, bool, error) { return Item{}, false, f.err }
func (f failing) Read(context.Context, Key) (Item, error)           { return Item{}, f.err }
func (f failing) Delete(context.Context, Key) error                 { return f.err }

func BenchmarkMemory(b *testing.B) {
	c := &clock{}
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		c.at(time.Duration(n/10) * time.Minute) // ten decisions a window
		if d, err := l.Check(b.Context(), r.next(1)); err != nil || d.Allowed != (n%10 < 3) {
			b.Fatal(d, err)
		}
	}
}
