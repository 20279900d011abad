package ratelimit_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A moment is one step of a timeline: ask, when, and what comes of it.
type moment struct {
	at      time.Duration
	ask     string // check, release or status
	id      string
	count   int64 // zero: 1
	readyAt time.Duration
	want    string // reason, used/limit, wait, and a place, relative to start
}

// timeline runs moments on one limiter.
func timeline(t *testing.T, p Policy, moments []moment) {
	t.Helper()
	c := &clock{}
	l := &Limiter{Store: new(memstore.Store), Cache: NewCache(4), DenyOutage: true, Now: c.now}
	receipts := map[string]int64{}
	for _, m := range moments {
		c.at(m.at)
		r := Request{UserID: "u", Activity: "act", Policy: p, Count: max(1, m.count), ID: m.id}
		if m.readyAt != 0 {
			r.ReadyAt = start.Add(m.readyAt).UnixMilli()
		}
		var d Decision
		var err error
		switch m.ask {
		case "release":
			r.At = receipts[m.id]
			d, err = l.Release(t.Context(), r)
		case "status":
			d, err = l.Status(t.Context(), r)
		default:
			d, err = l.Check(t.Context(), r)
			if d.At != 0 {
				receipts[m.id] = d.At
			}
		}
		if err != nil {
			t.Fatalf("at %v: %s %s: %v", m.at, m.ask, m.id, err)
		}
		if got := inWords(d); got != m.want {
			t.Fatalf("at %v: %s %s of %d: %s, want %s", m.at, m.ask, m.id, r.Count, got, m.want)
		}
	}
}

func inWords(d Decision) string {
	words := string(d.Reason)
	if d.Limit != 0 {
		words += " " + strconv.FormatInt(d.Used, 10) + "/" + strconv.FormatInt(d.Limit, 10)
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
	if d.Enqueued != 0 {
		words += " after " + strconv.FormatInt(d.Enqueued-1, 10)
	}
	return words
}

func TestTokenBucketTimeline(t *testing.T) {
	timeline(t, TokenBucket{Limit: 1, Window: 5 * time.Second, Burst: 3}, []moment{
		{at: 0, id: "a", want: "ok 1/3"},
		{at: 0, id: "b", count: 2, want: "ok 3/3"},
		{at: 4999 * time.Millisecond, id: "c", want: "limited 3/3, wait 1ms"},
		{at: 5 * time.Second, id: "c", want: "ok 3/3"},
		{at: 4 * time.Second, id: "d", want: "limited 4/3, wait 6s"}, // the clock stepped back
		{at: 6 * time.Second, ask: "release", id: "c", want: "ok 2/3"},
		{at: 6 * time.Second, ask: "release", id: "c", want: "ok 2/3"}, // once
		{at: 6 * time.Second, id: "c", want: "ok 3/3"},                 // a released id is new again
		{at: 15 * time.Second, id: "c", want: "duplicate 1/3"},
		{at: 26 * time.Second, ask: "release", id: "c", want: "ok 0/3"}, // too late
		{at: 26 * time.Second, ask: "status", id: "e", count: 3, want: "ok 0/3"},
		{at: time.Hour, id: "e", count: 3, want: "ok 3/3"},
		{at: time.Hour + 20*time.Second, ask: "release", id: "e", want: "ok 0/3"},
	})
}

// An action of before the bucket was last full weighs nothing, and so gives
// nothing back: no two are closer than the interval.
func TestABucketGivesBackOnlyWhatWeighs(t *testing.T) {
	timeline(t, TokenBucket{Limit: 1, Window: 5 * time.Second, Burst: 1}, []moment{
		{at: 0, id: "a", want: "ok 1/1"},
		{at: 5 * time.Second, id: "b", want: "ok 1/1"},
		{at: 5100 * time.Millisecond, ask: "release", id: "a", want: "ok 1/1"},
		{at: 5100 * time.Millisecond, id: "c", want: "limited 1/1, wait 4.9s"},
		{at: 5200 * time.Millisecond, ask: "release", id: "b", want: "ok 0/1"},
		{at: 5300 * time.Millisecond, id: "c", want: "ok 1/1"},
	})
}

func TestSlidingLogTimeline(t *testing.T) {
	timeline(t, SlidingLog{Limit: 5, Window: 12 * time.Hour}, []moment{
		{at: 0, id: "a", count: 2, want: "ok 2/5"},
		{at: time.Hour, id: "b", count: 2, want: "ok 4/5"},
		{at: time.Hour, id: "b", count: 2, want: "duplicate 4/5"},
		{at: 2 * time.Hour, id: "c", count: 2, want: "limited 4/5, wait 10h0m0s"},
		{at: 2*time.Hour + time.Second, id: "x", want: "ok 5/5"},
		{at: 2*time.Hour + 2*time.Second, ask: "release", id: "x", want: "ok 4/5"}, // a second later
		{at: 2*time.Hour + 2*time.Second, ask: "release", id: "x", want: "ok 4/5"},
		{at: 2*time.Hour + 2*time.Second, id: "c", want: "ok 5/5"},
		{at: 2*time.Hour + 62*time.Second, ask: "release", id: "c", want: "ok 4/5"}, // a minute later
		{at: 2*time.Hour + 63*time.Second, ask: "release", id: "c", want: "ok 4/5"}, // once
		{at: 3 * time.Hour, ask: "release", id: "c", want: "ok 4/5"},                // and for good
		{at: 12*time.Hour - time.Millisecond, id: "d", count: 2, want: "limited 4/5, wait 1ms"},
		{at: 12 * time.Hour, id: "d", count: 2, want: "ok 4/5"},                   // what was used first came back
		{at: 12*time.Hour + time.Second, ask: "release", id: "b", want: "ok 3/5"}, // 11 hours later, one of two
		{at: 12 * time.Hour, ask: "status", id: "e", want: "ok 3/5"},              // the clock stepped back
		{at: 13 * time.Hour, ask: "release", id: "b", want: "ok 2/5"},             // too late: it counts no more
		{at: 30 * time.Hour, ask: "status", id: "f", count: 5, want: "ok 0/5"},
	})
}

func TestSlidingWindowTimeline(t *testing.T) {
	const hour = 28_333_334 * time.Minute % time.Hour // start's minutes into its hour
	p := SlidingWindow{Limit: 50, Window: time.Hour}
	timeline(t, p, []moment{
		{at: -hour, id: "a", count: 40, want: "ok 40/50"},
		{at: 45*time.Minute - hour, id: "b", count: 11, want: "limited 40/50, wait 15m0.001s"},
		{at: 105*time.Minute - hour, id: "c", count: 40, want: "ok 50/50"}, // three quarters of the hour: a quarter of 40 counts
		{at: 105*time.Minute - hour, id: "d", want: "limited 50/50, wait 1ms"},
		{at: 105*time.Minute - hour, id: "c", count: 40, want: "duplicate 50/50"},
		{at: 106*time.Minute - hour, ask: "release", id: "c", count: 40, want: "ok 49/50"}, // too late
		{at: 106*time.Minute - hour, id: "e", want: "ok 50/50"},
		{at: 106*time.Minute - hour, ask: "release", id: "e", want: "ok 49/50"},
		{at: 106*time.Minute - hour, ask: "release", id: "e", want: "ok 49/50"},
		{at: 20*time.Minute - hour, ask: "status", id: "f", want: "ok 40/50"}, // a clock a period behind still finds its own
		{at: 5 * time.Hour, ask: "status", id: "f", want: "ok 0/50"},
	})
}

func TestReservoirTimeline(t *testing.T) {
	timeline(t, Reservoir{Limit: 2, Window: 10 * time.Second, Ahead: 30 * time.Second}, []moment{
		{at: 0, id: "a", want: "ok 1/2"},
		{at: 0, ask: "status", id: "b", want: "ok 1/2"},
		{at: 0, id: "b", want: "ok 2/2"},
		{at: time.Second, ask: "status", id: "c", want: "delayed 2/2, wait 9s, place at 10s after 0"},
		{at: time.Second, id: "c", want: "delayed 2/2, wait 9s, place at 10s after 0"},
		{at: time.Second, id: "d", want: "delayed 2/2, wait 9s, place at 10s after 1"},
		{at: time.Second, id: "e", want: "delayed 2/2, wait 19s, place at 20s after 2"},
		{at: 2 * time.Second, id: "c", want: "delayed 2/2, wait 8s, place at 10s after 0"}, // the same place again
		{at: 2 * time.Second, id: "a", want: "duplicate 2/2"},
		{at: 9999 * time.Millisecond, id: "c2", readyAt: 10 * time.Second, want: "delayed, wait 1ms, place at 10s"}, // early
		{at: 10 * time.Second, id: "c2", readyAt: 10 * time.Second, want: "ok"},                                     // on time
		{at: 19999 * time.Millisecond, id: "d2", readyAt: 10 * time.Second, want: "ok"},
		{at: 20 * time.Second, id: "d2", readyAt: 10 * time.Second, want: "ok 2/2"}, // late: a new place
		{at: 20 * time.Second, id: "f", want: "delayed 2/2, wait 10s, place at 30s after 0"},
		{at: 0, id: "g", want: "delayed 2/2, wait 30s, place at 30s after 5"}, // the clock stepped back
		{at: 0, id: "h", want: "limited 2/2, wait 10s"},                       // more than 30 s ahead
		{at: 10 * time.Second, id: "h", want: "delayed 2/2, wait 30s, place at 40s after 4"},
		{at: 50 * time.Second, id: "i2", readyAt: 100 * time.Second, want: "ok 1/2"}, // never given: a new place
		{at: 60 * time.Second, ask: "status", id: "i", want: "ok 0/2"},               // places that nobody came for have passed
	})
}

func TestSeveralLimitsTimeline(t *testing.T) {
	p := Several{{"minute", FixedWindow{Limit: 3, Window: time.Minute}}, {"hour", FixedWindow{Limit: 5, Window: time.Hour}}}
	hour := 60*time.Minute - 28_333_334*time.Minute%time.Hour // of which so much is left at start
	timeline(t, p, []moment{
		{at: 0, id: "a", count: 3, want: "ok 3/3"},
		{at: 0, id: "a", count: 3, want: "duplicate 3/3"},
		{at: 0, id: "b", want: "limited 3/3, wait 1m0s for the minute"},
		{at: time.Minute, id: "b", count: 3, want: "limited 3/5, wait " + (hour - time.Minute).String() + " for the hour"},
		{at: time.Minute, id: "b", count: 2, want: "ok 5/5"},
		{at: time.Minute, id: "c", want: "limited 5/5, wait " + (hour - time.Minute).String() + " for the hour"},
		{at: time.Minute, ask: "release", id: "b", count: 2, want: "ok 3/5"},
		{at: time.Minute, ask: "release", id: "b", count: 2, want: "ok 3/5"},
		{at: 59 * time.Second, id: "d", want: "limited 0/3, wait 1s for the minute"}, // the clock stepped back
		{at: 59 * time.Second, ask: "status", id: "d", want: "limited 0/3, wait 1s for the minute"},
		{at: time.Minute, id: "d", want: "ok 4/5"},
		{at: 119 * time.Second, id: "e", want: "ok 5/5"},
		{at: 120 * time.Second, ask: "release", id: "e", want: "ok 4/5"}, // of the hour alone, as its minute has passed
		{at: 120 * time.Second, ask: "release", id: "e", want: "ok 4/5"},
		{at: 121 * time.Second, ask: "release", id: "a", want: "ok 4/5"}, // too late
		{at: hour, id: "e", count: 3, want: "ok 3/3"},
	})
}

// A release takes nothing off a window that its check did not count in.
func TestSeveralLimitsReleaseAcrossAWindow(t *testing.T) {
	p := Several{{"minute", FixedWindow{Limit: 3, Window: time.Minute}}, {"hour", FixedWindow{Limit: 9, Window: time.Hour}}}
	timeline(t, p, []moment{
		{at: 59 * time.Second, id: "a", count: 2, want: "ok 2/3"},
		{at: 60 * time.Second, id: "b", count: 2, want: "ok 2/3"},
		{at: 61 * time.Second, ask: "release", id: "a", count: 2, want: "ok 2/3"},
		{at: 61 * time.Second, id: "c", count: 2, want: "limited 2/3, wait 59s for the minute"},
	})
}

// An instance that has not seen the item gives back all the same.
func TestAColdInstanceReleases(t *testing.T) {
	for name, subject := range subjects {
		if _, ok := subject.policy.(Reservoir); ok {
			continue
		}
		c := &clock{}
		c.at(0)
		store := new(memstore.Store)
		ask := func(ask func(*Limiter) (Decision, error)) Decision {
			t.Helper()
			d, err := ask(&Limiter{Store: store, Now: c.now})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		r := Request{UserID: "u", Activity: "act", Policy: subject.policy, Count: 1, ID: "a"}
		r.At = ask(func(l *Limiter) (Decision, error) { return l.Check(t.Context(), r) }).At
		for range 2 {
			if d := ask(func(l *Limiter) (Decision, error) { return l.Release(t.Context(), r) }); d.Used != 0 {
				t.Errorf("%s: %d used after a release", name, d.Used)
			}
		}
	}
}

// A decision on several limits tells of each.
func TestEachOfSeveralLimits(t *testing.T) {
	c := &clock{}
	c.at(0)
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	d, err := l.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: minuteAndDay, Count: 4, ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	day := start.Truncate(24 * time.Hour).Add(24 * time.Hour).UnixMilli()
	want := []Each{
		{Name: "minute", Limit: 10, Window: time.Minute, Figures: Figures{Used: 4, Remaining: 6, ResetAt: start.UnixMilli() + 60_000}},
		{Name: "day", Limit: 200, Window: 24 * time.Hour, Figures: Figures{Used: 4, Remaining: 196, ResetAt: day}},
	}
	if diff := cmp.Diff(want, d.Each); diff != "" {
		t.Errorf("each limit (-want +got):\n%s", diff)
	}
}

// Batches at once can't pass the limit together.
func TestSimultaneousBatches(t *testing.T) {
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			l := &Limiter{Store: open(t), Timeout: 20 * time.Second, Now: func() time.Time { return start }}
			var mu sync.Mutex
			granted := int64(0)
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					d, err := l.Check(t.Context(), Request{
						UserID: "acct", Activity: "pin", Policy: SlidingLog{Limit: 100, Window: 12 * time.Hour},
						Count: 10, Partial: true, ID: strconv.Itoa(i),
					})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					granted += d.Granted
				})
			}
			wg.Wait()
			if granted != 100 {
				t.Errorf("%d granted to 16 batches of 10 at once, want 100", granted)
			}
		})
	}
}
