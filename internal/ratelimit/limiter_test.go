package ratelimit_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

func TestFixedWindowTimeline(t *testing.T) {
	c := newClock()
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	for _, step := range []struct {
		at      time.Duration
		count   int64
		partial bool
		want    Decision
	}{
		{at: 0, count: 1, want: okay(reading(1, 0), 1)},
		{at: 10 * time.Second, count: 3, want: limited(reading(1, 50*time.Second))},
		{at: 20 * time.Second, count: 5, partial: true, want: okay(reading(3, 40*time.Second), 2)},
		{at: 59 * time.Second, count: 1, want: limited(reading(3, time.Second))},
		{at: 59 * time.Second, count: 1, partial: true, want: limited(reading(3, time.Second))},
		{at: 59999 * time.Millisecond, count: 1, want: limited(reading(3, time.Millisecond))},
		{at: 60 * time.Second, count: 1, want: okay(readingNext(1, 0), 1)},            // a new window
		{at: 59 * time.Second, count: 1, want: limited(reading(3, time.Second))},      // the clock stepped back
		{at: 61 * time.Second, count: 2, want: okay(readingNext(3, 0), 2)},            // and forward
		{at: 119 * time.Second, count: 1, want: limited(readingNext(3, time.Second))}, // the end of this window
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

func TestCheckRejectsACountThatNeverFits(t *testing.T) {
	store := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
	l := &Limiter{Store: store}
	for _, r := range []Request{
		{Policy: three, ID: "a", Count: 0},
		{Policy: three, ID: "a", Count: -1},
		{Policy: three, ID: "a", Count: 4},
		{Policy: three, ID: "a", Count: 0, Partial: true},
		{Policy: three, Count: 1},
	} {
		for name, ask := range verbs(l)[:2] {
			if d, err := ask(t.Context(), r); err == nil || errors.As(err, new(*StoreError)) {
				t.Errorf("verb %d: count %d, id %q: %+v, %v, want an error about the request", name, r.Count, r.ID, d, err)
			}
		}
	}
	if store.count() != 0 {
		t.Errorf("the store got %d requests, want none", store.count())
	}
}

func TestARepeatIsCountedOnce(t *testing.T) {
	c := newClock()
	l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
	var r ids
	first := r.next(2)
	check(t, l, first, okay(reading(2, 0), 2))
	check(t, l, r.next(1), okay(reading(3, 0), 1))
	// A repeat is allowed although the limit is reached. It gets the current figures.
	c.at(59 * time.Second)
	repeat := check(t, l, first, repeated(reading(3, 0), 2))
	if repeat.At != 0 {
		t.Errorf("a repeat has the receipt %d, want none", repeat.At)
	}
	// A refusal is not remembered: its id counts in the next window.
	refused := r.next(1)
	check(t, l, refused, limited(reading(3, time.Second)))
	c.at(60 * time.Second)
	check(t, l, refused, okay(readingNext(1, 0), 1))
}

// A window with a limit of up to 100 remembers an id until it ends. Every other
// item remembers it for 21 to 28 s, or until its own window ends.
func TestHowLongAnIDIsRemembered(t *testing.T) {
	for _, tt := range []struct {
		text   string
		offset time.Duration // of the first check
		after  time.Duration
		want   Reason
	}{
		{"100/1h", 0, 30 * time.Minute, Duplicate},
		{"100/1m", 55 * time.Second, 4999 * time.Millisecond, Duplicate},
		{"100/1m", 55 * time.Second, 5 * time.Second, OK}, // the next window has an item of its own
		{"101/1m", 55 * time.Second, 4999 * time.Millisecond, Duplicate},
		{"101/1m", 55 * time.Second, 5 * time.Second, OK},
		{"101/1h", 0, 20 * time.Second, Duplicate},
		{"101/1h", 6999 * time.Millisecond, 20 * time.Second, Duplicate},
		{"101/1h", 0, 20999 * time.Millisecond, Duplicate},
		{"101/1h", 0, 28 * time.Second, OK},
		{"log 100/12h", 6999 * time.Millisecond, 20 * time.Second, Duplicate},
		{"log 100/12h", 0, 28 * time.Second, OK},
		{"log 100/12h", 0, 259 * time.Second, OK}, // the name of the set repeats
		{"minute: 10/1m, day: 200/1d", 6999 * time.Millisecond, 20 * time.Second, Duplicate},
		{"minute: 10/1m, day: 200/1d", 0, 28 * time.Second, OK},
	} {
		c := newClock()
		l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
		r := request(policy.Must(tt.text), "a", 1)
		c.at(tt.offset)
		mustCheck(t, l, r)
		c.at(tt.offset + tt.after)
		if d := mustCheck(t, l, r); d.Reason != tt.want {
			t.Errorf("%s: the id repeats after %v: %s, want %s", tt.text, tt.after, d.Reason, tt.want)
		}
	}
}

func TestResetForgets(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now, Memory: NewMemory(mib)}
	var r ids
	first := r.next(3)
	check(t, l, first, okay(reading(3, 0), 3))
	check(t, l, r.next(1), limited(reading(3, time.Minute)))
	d, err := l.Decide(t.Context(), Reset, r.next(1))
	if err != nil || !d.Allowed || d.Reason != OK || d.Used != 0 || d.Remaining != 3 {
		t.Fatalf("Reset = %+v, %v, want allowed, ok, nothing used", d, err)
	}
	check(t, l, first, okay(reading(3, 0), 3))
}

func TestStatusDecidesWithoutCounting(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now}
	var r ids
	status := func(r Request, want Decision) {
		t.Helper()
		got, err := l.Decide(t.Context(), Status, r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, brief); diff != "" {
			t.Fatalf("Status (-want +got):\n%s", diff)
		}
	}
	for range 2 {
		status(r.next(3), okay(reading(0, 0), 3))
	}
	first := r.next(2)
	check(t, l, first, okay(reading(2, 0), 2))
	status(r.next(2), limited(reading(2, time.Minute)))
	status(first, repeated(reading(2, 0), 2))
	some := r.next(2)
	some.Partial = true
	status(some, okay(reading(2, time.Minute), 1))
}

func TestALoweredLimitIsNeverNegative(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now}
	for i, tt := range []struct {
		text string
		n    int64
		want string
	}{
		{"3/1m", 3, "ok 3/3"},
		{"2/1m", 1, "limited 3/2, wait 1m0s"},
		{"4/1m", 1, "ok 4/4"},
	} {
		d := mustCheck(t, l, request(policy.Must(tt.text), strconv.Itoa(i), tt.n))
		if inWords(d) != tt.want || d.Remaining != 0 {
			t.Errorf("%s: %s, %d remain, want %s", tt.text, inWords(d), d.Remaining, tt.want)
		}
	}
}

// BenchmarkMemory decides on the embedded store, ten times in each window.
func BenchmarkMemory(b *testing.B) {
	c := newClock()
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		c.at(time.Duration(n/10) * time.Minute)
		if d, err := l.Check(b.Context(), r.next(1)); err != nil || d.Allowed != (n%10 < 3) {
			b.Fatal(d, err)
		}
	}
}
