package ratelimit_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// sec keeps the rows of timelines short.
const sec = time.Second

// A moment is one row of a timeline.
type moment struct {
	at      time.Duration // after start
	by      string        // who decides; empty: an instance that remembers, cold: one that knows nothing, ahead: one whose clock is 2 s ahead
	ask     Op            // empty: check
	id      string
	count   int64         // zero: 1
	partial bool          // grant what fits
	limit   string        // the limit from this row on; empty: as before
	hold    bool          // the activity holds its receipts
	clear   bool          // release: ends the series of each lockout, too
	receipt time.Duration // after start, for a release and a renewal; zero: from the id's last check or renewal
	readyAt time.Duration // the place to present, after start; zero: none
	table   fault         // what happens to requests from this row on; nil: as before
	times   int           // asks so often, with the ids id1, id2 and so on; zero: once, with id
	want    string        // what inWords returns for the decision, or for the last one
	granted int64         // how many actions; zero: anything
	sent    int           // how many requests it takes; none: no request; zero: anything
	used    []int64       // what each of several limits counts afterwards; empty: anything
}

// none is for a decision that sends no request.
const none = -1

// timeline runs moments on each store. If the table fails in one of them, the instance that
// remembers decides alone.
func timeline(t *testing.T, text string, moments []moment) {
	t.Helper()
	onEachStore(t, func(t *testing.T, store Store) {
		t.Helper()
		c, ahead := newClock(), newClock()
		table := &faulty{Store: store, faults: []fault{pass}}
		decider := map[string]*Limiter{
			"":      {Store: table, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now},
			"cold":  {Store: table, Timeout: 20 * time.Second, Now: c.now},
			"ahead": {Store: table, Timeout: 20 * time.Second, Now: ahead.now},
		}
		fails := slices.ContainsFunc(moments, func(m moment) bool { return m.table != nil })
		if fails {
			decider[""].NewBudget = noPauses(3) // no answer is late, however slow this machine is
		}
		p, receipts := policy.Must(text), map[string]int64{}
		for _, m := range moments {
			c.at(m.at)
			ahead.at(m.at + 2*time.Second)
			if m.limit != "" {
				p = policy.Must(m.limit)
			}
			if m.table != nil {
				table.set(m.table)
			}
			r := request(p, m.id, max(1, m.count))
			r.Fallback, r.Hold, r.Partial, r.Clear = fails, m.hold, m.partial, m.clear
			if m.readyAt != 0 {
				r.ReadyAt = start.Add(m.readyAt).UnixMilli()
			}
			op := cmp.Or(m.ask, Check)
			if op == Release || op == Renew {
				if r.At = receipts[m.id]; m.receipt != 0 || r.At == 0 {
					r.At = start.Add(m.receipt).UnixMilli()
				}
			}
			var d Decision
			var err error
			for n := range max(1, m.times) {
				if m.times > 0 {
					r.ID = m.id + strconv.Itoa(n+1)
				}
				if d, err = decider[m.by].Decide(t.Context(), op, r); err != nil {
					t.Fatalf("at %v: %s %s: %v", m.at, op, r.ID, err)
				}
			}
			if d.At != 0 {
				receipts[m.id] = d.At
			}
			m.judge(t, r, d)
		}
	})
}

// judge compares the decision with what is wanted.
func (m moment) judge(t *testing.T, r Request, d Decision) {
	t.Helper()
	asked := fmt.Sprintf("at %v: %s %s of %d", m.at, cmp.Or(m.ask, Check), r.ID, r.Count)
	if got := inWords(d); got != m.want || m.granted != 0 && d.Granted != m.granted {
		t.Fatalf("%s: %s, granted %d, want %s", asked, got, d.Granted, m.want)
	}
	if m.sent != 0 && d.Requests != max(0, m.sent) {
		t.Fatalf("%s takes %d requests, want %d", asked, d.Requests, max(0, m.sent))
	}
	refused := d.Reason == Limited || d.Reason == Delayed || d.Reason == Expired || d.Reason == Unavailable && d.Wait != 0
	if d.Allowed == refused || d.Remaining < 0 {
		t.Fatalf("%s: %+v", asked, d)
	}
	if got := eachUsed(d); m.used != nil && !slices.Equal(got, m.used) {
		t.Fatalf("%s: %d are used, want %d", asked, got, m.used)
	}
}

// A story is a timeline of one limit, and what it shows.
type story struct {
	holds, limit string
	moments      []moment
}

// stories runs each story as a subtest.
func stories(t *testing.T, all []story) {
	t.Helper()
	for _, s := range all {
		t.Run(s.holds, func(t *testing.T) { timeline(t, s.limit, s.moments) })
	}
}

// inWords returns a decision's reason, used/limit, wait, the limit that refused,
// and its place relative to start with the number of places before it.
func inWords(d Decision) string {
	words := string(d.Reason)
	if d.Limit != 0 {
		words += " " + strconv.FormatInt(d.Used, 10) + "/" + strconv.FormatInt(d.Limit, 10)
	}
	if d.Locked {
		words += " locked"
	}
	if d.Wait != 0 {
		words += ", wait " + d.Wait.String()
	}
	if d.LimitedBy != "" {
		words += " for the " + d.LimitedBy
	}
	if d.ReadyAt != 0 {
		words += ", place at " + time.UnixMilli(d.ReadyAt).Sub(start).String()
	}
	if d.Waiting != 0 {
		words += " after " + strconv.FormatInt(d.Waiting-1, 10)
	}
	return words
}

// begun is how much of its hour has passed at start, and hour how much is left.
const begun = 28_339_094 * time.Minute % time.Hour
const hour = time.Hour - begun

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

// Each kind of limit, and several together.
func TestTimelines(t *testing.T) {
	stories(t, []story{
		{"a fixed window", "3/1m", []moment{
			{at: 0, id: "a", want: "ok 1/3"},
			{at: 10 * sec, id: "b", count: 3, want: "limited 1/3, wait 50s"},
			{at: 20 * sec, id: "c", count: 5, partial: true, want: "ok 3/3, wait 40s", granted: 2},
			{at: 59 * sec, id: "d", want: "limited 3/3, wait 1s"},
			{at: 59 * sec, id: "d", partial: true, want: "limited 3/3, wait 1s"},
			{at: 59 * sec, id: "a", want: "duplicate 3/3"}, // allowed, although the limit is reached
			{at: 59999 * time.Millisecond, id: "d", want: "limited 3/3, wait 1ms"},
			{at: 60 * sec, id: "d", want: "ok 1/3"},                // a new window; a refusal is not remembered
			{at: 59 * sec, id: "e", want: "limited 3/3, wait 1s"},  // the clock stepped back
			{at: 61 * sec, id: "e", count: 2, want: "ok 3/3"},      // and forward
			{at: 119 * sec, id: "f", want: "limited 3/3, wait 1s"}, // the end of this window
			{at: 119 * sec, ask: Reset, id: "g", want: "ok 0/3"},   // it forgets ids, too
			{at: 119 * sec, id: "d", count: 3, want: "ok 3/3"},
		}},
		{"a bucket", "bucket 1/5s burst 3", []moment{
			{at: 0, id: "a", want: "ok 1/3"},
			{at: 0, id: "b", count: 2, want: "ok 3/3"},
			{at: 4999 * time.Millisecond, id: "c", want: "limited 3/3, wait 1ms"},
			{at: 5 * sec, id: "c", want: "ok 3/3"},
			{at: 4 * sec, id: "d", want: "limited 4/3, wait 6s"}, // the clock stepped back
			{at: 6 * sec, ask: Release, id: "c", want: "ok 2/3"},
			{at: 6 * sec, ask: Release, id: "c", want: "ok 2/3"}, // once
			{at: 6 * sec, id: "c", want: "ok 3/3"},               // a released id is new again
			{at: 15 * sec, id: "c", want: "duplicate 1/3"},
			{at: 26 * sec, ask: Release, id: "c", want: "ok 0/3"}, // too late
			{at: 26 * sec, ask: Status, id: "e", count: 3, want: "ok 0/3"},
			{at: time.Hour, id: "e", count: 3, want: "ok 3/3"},
			{at: time.Hour + 20*sec, ask: Release, id: "e", want: "ok 0/3"},
		}},
		{"a log", "log 5/12h", []moment{
			{at: 0, id: "a", count: 2, want: "ok 2/5"},
			{at: time.Hour, id: "b", count: 2, want: "ok 4/5"},
			{at: time.Hour, id: "b", count: 2, want: "duplicate 4/5"},
			{at: 2 * time.Hour, id: "c", count: 2, want: "limited 4/5, wait 10h0m0s"},
			{at: 2*time.Hour + sec, id: "x", want: "ok 5/5"},
			{at: 2*time.Hour + 2*sec, ask: Release, id: "x", want: "ok 4/5"}, // a second later
			{at: 2*time.Hour + 2*sec, ask: Release, id: "x", want: "ok 4/5"},
			{at: 2*time.Hour + 2*sec, id: "c", want: "ok 5/5"},
			{at: 2*time.Hour + 62*sec, ask: Release, id: "c", want: "ok 4/5"}, // a minute later
			{at: 2*time.Hour + 63*sec, ask: Release, id: "c", want: "ok 4/5"}, // once
			{at: 3 * time.Hour, ask: Release, id: "c", want: "ok 4/5"},        // never again
			{at: 12*time.Hour - time.Millisecond, id: "d", count: 2, want: "limited 4/5, wait 1ms"},
			{at: 12 * time.Hour, id: "d", count: 2, want: "ok 4/5"},         // the first two have expired
			{at: 12*time.Hour + sec, ask: Release, id: "b", want: "ok 3/5"}, // 11 hours later, one of two
			{at: 12 * time.Hour, ask: Status, id: "e", want: "ok 3/5"},      // the clock stepped back
			{at: 13 * time.Hour, ask: Release, id: "b", want: "ok 2/5"},     // too late: it no longer counts
			{at: 30 * time.Hour, ask: Status, id: "f", count: 5, want: "ok 0/5"},
		}},
		{"a sliding counter", "sliding 50/1h", []moment{
			{at: -begun, id: "a", count: 40, want: "ok 40/50"},
			{at: 45*time.Minute - begun, id: "b", count: 11, want: "limited 40/50, wait 15m0.001s"},
			{at: 105*time.Minute - begun, id: "c", count: 40, want: "ok 50/50"}, // three quarters of the begun: a quarter of 40 counts
			{at: 105*time.Minute - begun, id: "d", want: "limited 50/50, wait 1ms"},
			{at: 105*time.Minute - begun, id: "c", count: 40, want: "duplicate 50/50"},
			{at: 106*time.Minute - begun, ask: Release, id: "c", count: 40, want: "ok 49/50"}, // too late
			{at: 106*time.Minute - begun, id: "e", want: "ok 50/50"},
			{at: 106*time.Minute - begun, ask: Release, id: "e", want: "ok 49/50"},
			{at: 106*time.Minute - begun, ask: Release, id: "e", want: "ok 49/50"},
			{at: 20*time.Minute - begun, ask: Status, id: "f", want: "ok 40/50"}, // a clock that is a period behind finds its own
			{at: 5 * time.Hour, ask: Status, id: "f", want: "ok 0/50"},
		}},
		{"several limits", "minute: 3/1m, hour: 5/1h", []moment{
			{at: 0, id: "a", count: 3, want: "ok 3/3"},
			{at: 0, id: "a", count: 3, want: "duplicate 3/3"},
			{at: 0, id: "b", want: "limited 3/3, wait 1m0s for the minute"},
			{at: time.Minute, id: "b", count: 3, want: "limited 3/5, wait " + (hour - time.Minute).String() + " for the hour"},
			{at: time.Minute, id: "b", count: 2, want: "ok 5/5"},
			{at: time.Minute, id: "c", want: "limited 5/5, wait " + (hour - time.Minute).String() + " for the hour"},
			{at: time.Minute, ask: Release, id: "b", count: 2, want: "ok 3/5"},
			{at: time.Minute, ask: Release, id: "b", count: 2, want: "ok 3/5"},
			{at: 59 * sec, id: "d", want: "ok 4/5"}, // the clock stepped back, so it counts in the minute that has begun
			{at: time.Minute, id: "d", want: "duplicate 4/5", granted: 1},
			{at: 119 * sec, id: "e", want: "ok 5/5"},
			{at: 120 * sec, ask: Release, id: "e", want: "ok 4/5"}, // of the hour only, because its minute has passed
			{at: 120 * sec, ask: Release, id: "e", want: "ok 4/5"},
			{at: 121 * sec, ask: Release, id: "a", want: "ok 4/5"}, // too late
			{at: hour, id: "e", count: 3, want: "ok 3/3"},
		}},
		// Status answers as a check would be answered now, and counts nothing.
		{"a status", "3/1m", []moment{
			{ask: Status, id: "a", count: 3, want: "ok 0/3", granted: 3},
			{ask: Status, id: "a", count: 3, want: "ok 0/3", granted: 3},
			{id: "b", count: 2, want: "ok 2/3"},
			{ask: Status, id: "a", count: 2, want: "limited 2/3, wait 1m0s"},
			{ask: Status, id: "a", count: 2, partial: true, want: "ok 2/3, wait 1m0s", granted: 1},
			{ask: Status, id: "b", count: 2, want: "duplicate 2/3", granted: 2},
		}},
		// What fits is decided by the store, and never by the memory.
		{"a refusal from memory", "3/1m", []moment{
			{id: "a", count: 2, sent: 1, want: "ok 2/3"},
			{id: "b", count: 2, sent: none, want: "limited 2/3, wait 1m0s"}, // by the state that the first one brought
			{id: "c", sent: 1, want: "ok 3/3"},
			{id: "d", sent: none, want: "limited 3/3, wait 1m0s"},
			{id: "a", count: 2, sent: 1, want: "duplicate 3/3"}, // a repeat of a counted request is not refused
			{id: "e", limit: "4/1m", sent: 1, want: "ok 4/4"},
			{at: sec, id: "f", limit: "3/1m", sent: none, want: "limited 4/3, wait 59s"}, // for a second
			{at: 1001 * time.Millisecond, id: "f", sent: 1, want: "limited 4/3, wait 58.999s"},
		}},
		// A max above 100 is added to a limit of up to 100. The ids of before are known for the whole
		// window, and those from then on for 20 s. A max that is taken away changes it back.
		{"ids after a max was added", "10/12h", []moment{
			{id: "r1", want: "ok 1/10"},
			{at: time.Minute, by: "cold", id: "r1", limit: "10/12h max 200", want: "duplicate 1/10"},
			{at: time.Minute, by: "cold", id: "r2", want: "ok 2/10"},
			{at: 80 * sec, by: "cold", id: "r2", want: "duplicate 2/10"},
			{at: 2 * time.Minute, by: "cold", id: "r2", want: "ok 3/10"},
			{at: 10 * time.Minute, by: "cold", ask: Release, id: "r1", want: "ok 2/10"},
			{at: 10 * time.Minute, by: "cold", ask: Release, id: "r2", want: "ok 2/10"},
			{at: 11 * time.Minute, by: "cold", id: "r3", want: "ok 3/10"},
			{at: 12 * time.Minute, by: "cold", id: "r3", limit: "10/12h", want: "ok 4/10"},
			{at: time.Hour, by: "cold", id: "r3", want: "duplicate 4/10"},
		}},
	})
}
