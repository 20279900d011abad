package ratelimit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

func TestFixedWindowTimeline(t *testing.T) {
	const seconds = time.Second
	timeline(t, "3/1m", []moment{
		{at: 0, id: "a", want: "ok 1/3"},
		{at: 10 * seconds, id: "b", count: 3, want: "limited 1/3, wait 50s"},
		{at: 20 * seconds, id: "c", count: 5, partial: true, want: "ok 3/3, wait 40s", granted: 2},
		{at: 59 * seconds, id: "d", want: "limited 3/3, wait 1s"},
		{at: 59 * seconds, id: "d", partial: true, want: "limited 3/3, wait 1s"},
		{at: 59 * seconds, id: "a", want: "duplicate 3/3"}, // allowed, although the limit is reached
		{at: 59999 * time.Millisecond, id: "d", want: "limited 3/3, wait 1ms"},
		{at: 60 * seconds, id: "d", want: "ok 1/3"},                // a new window; a refusal is not remembered
		{at: 59 * seconds, id: "e", want: "limited 3/3, wait 1s"},  // the clock stepped back
		{at: 61 * seconds, id: "e", count: 2, want: "ok 3/3"},      // and forward
		{at: 119 * seconds, id: "f", want: "limited 3/3, wait 1s"}, // the end of this window
		{at: 119 * seconds, ask: Reset, id: "g", want: "ok 0/3"},   // it forgets ids, too
		{at: 119 * seconds, id: "d", count: 3, want: "ok 3/3"},
	})
}

// Status answers as a check would be answered now, and counts nothing.
func TestStatusTimeline(t *testing.T) {
	timeline(t, "3/1m", []moment{
		{ask: Status, id: "a", count: 3, want: "ok 0/3", granted: 3},
		{ask: Status, id: "a", count: 3, want: "ok 0/3", granted: 3},
		{id: "b", count: 2, want: "ok 2/3"},
		{ask: Status, id: "a", count: 2, want: "limited 2/3, wait 1m0s"},
		{ask: Status, id: "a", count: 2, partial: true, want: "ok 2/3, wait 1m0s", granted: 1},
		{ask: Status, id: "b", count: 2, want: "duplicate 2/3", granted: 2},
	})
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
		l, c := instance(new(memstore.Store))
		r := request(policy.Must(tt.text), "a", 1)
		c.at(tt.offset)
		mustCheck(t, l, r)
		c.at(tt.offset + tt.after)
		if d := mustCheck(t, l, r); d.Reason != tt.want {
			t.Errorf("%s: the id repeats after %v: %s, want %s", tt.text, tt.after, d.Reason, tt.want)
		}
	}
}
