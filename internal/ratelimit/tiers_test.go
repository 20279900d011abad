package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// The laws hold, too, where what is counted was counted for another tier, or by
// a limit that has changed since.
func TestLawsAcrossTiers(t *testing.T) {
	for name, pair := range map[string][2]Policy{
		"windows":      {FixedWindow{Limit: 3, Window: 7 * time.Millisecond}, FixedWindow{Limit: 9, Window: 7 * time.Millisecond}},
		"buckets":      {TokenBucket{Limit: 3, Window: 21 * time.Millisecond, Burst: 4}, TokenBucket{Limit: 2, Window: 10 * time.Millisecond, Burst: 9}},
		"slow buckets": {TokenBucket{Limit: 1, Window: 10 * time.Millisecond, Burst: 3}, TokenBucket{Limit: 1, Window: 3 * time.Millisecond, Burst: 3}},
		"logs":         {SlidingLog{Limit: 3, Window: 7 * time.Millisecond}, SlidingLog{Limit: 9, Window: 7 * time.Millisecond}},
		"counters":     {SlidingWindow{Limit: 3, Window: 7 * time.Millisecond}, SlidingWindow{Limit: 9, Window: 7 * time.Millisecond}},
		"reservoirs": {
			Reservoir{Limit: 3, Window: 7 * time.Millisecond, Ahead: 20 * time.Millisecond},
			Reservoir{Limit: 2, Window: 7 * time.Millisecond, Ahead: 20 * time.Millisecond},
		},
	} {
		if err := Share(pair[0], pair[1]); err != nil && name != "reservoirs" {
			t.Fatal(err)
		}
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			w := reach(t, pair[0])
			draw := func() Policy { return pair[rapid.IntRange(0, 1).Draw(t, "tier")] }
			meanwhile := func() {
				for range rapid.IntRange(0, 4).Draw(t, "meanwhile") {
					w.policy = draw()
					w.take(rapid.Int64Range(1, w.limit()).Draw(t, "n"))
				}
			}
			w.now = max(w.now, w.latest)
			meanwhile()
			w.now += rapid.Int64Range(0, 30).Draw(t, "pause")
			w.policy = draw()
			p, n := w.policy, rapid.Int64Range(1, w.limit()).Draw(t, "n")
			u, ok := p.Plan(w.now, n)(w.state())
			if ok && !u.Holds(w.state()) {
				t.Fatalf("%v: %+v does not hold in %v", p, u, w.state())
			}
			if wait := p.Wait(w.now, n, w.state()); ok != (wait == 0) {
				t.Fatalf("%v: in %v %d are taken: %v, and the wait is %v", p, w.state(), n, ok, wait)
			}
			before := w.state()
			meanwhile()
			_, log := p.(SlidingLog) // see its doc comment
			if _, fits := p.Plan(w.now, n)(w.state()); ok && u.Holds(w.state()) && !fits && !log {
				t.Fatalf("%v: planned in %v, %+v holds in %v, where %d don't fit", p, before, u, w.state(), n)
			}
			if f := p.Figures(w.now, w.state()); f.Remaining < 0 {
				t.Fatalf("%v: %+v", p, f)
			}
		}))
	}
}

// A limit that changes, or a tier that does, acts on what is counted already.
func TestAChangedLimitActsOnWhatIsCounted(t *testing.T) {
	bucket := func(n int64) Policy { return TokenBucket{Limit: n, Window: time.Minute, Burst: n} }
	log := func(n int64) Policy { return SlidingLog{Limit: n, Window: time.Hour} }
	counter := func(n int64) Policy { return SlidingWindow{Limit: n, Window: time.Hour} }
	reservoir := func(n int64) Policy { return Reservoir{Limit: n, Window: 10 * time.Second, Ahead: time.Minute} }
	several := func(n int64) Policy {
		return Several{{"minute", FixedWindow{Limit: n, Window: time.Minute}}, {"bucket", bucket(n)}}
	}
	for name, tt := range map[string]struct {
		from, to    Policy
		used        int
		left, after string // what the next gets, and the one that would be above the new limit
	}{
		"window, raised":    {FixedWindow{Limit: 10, Window: time.Minute}, FixedWindow{Limit: 20, Window: time.Minute}, 10, "ok 11/20", "ok 12/20"},
		"window, lowered":   {FixedWindow{Limit: 20, Window: time.Minute}, FixedWindow{Limit: 10, Window: time.Minute}, 15, "limited 15/10, wait 1m0s", ""},
		"bucket, raised":    {bucket(10), bucket(20), 10, "ok 11/20", "ok 12/20"},
		"bucket, lowered":   {bucket(20), bucket(10), 15, "limited 15/10, wait 18s", ""}, // 6 have to come back, at the pace they were counted by
		"log, raised":       {log(10), log(20), 10, "ok 11/20", "ok 12/20"},
		"log, lowered":      {log(20), log(10), 15, "limited 15/10, wait 1h0m0s", ""},
		"counter, raised":   {counter(10), counter(20), 10, "ok 11/20", "ok 12/20"},
		"reservoir, raised": {reservoir(2), reservoir(3), 4, "delayed 3/3, wait 10s, place at 10s after 2", "delayed 3/3, wait 20s, place at 20s after 3"},
		// The window in which three have a place takes no more.
		"reservoir, lowered": {reservoir(3), reservoir(2), 6, "delayed 2/2, wait 20s, place at 20s after 2", "delayed 2/2, wait 20s, place at 20s after 3"},
		"several, raised":    {several(10), several(20), 10, "ok 11/20", "ok 12/20"},
		"several, lowered":   {several(20), several(10), 15, "limited 15/10, wait 1m0s for the minute", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{}
			c.at(0)
			l := &Limiter{Store: new(memstore.Store), Cache: NewCache(4), Now: c.now}
			for i := range tt.used {
				if _, err := l.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: tt.from, Count: 1, ID: strconv.Itoa(i)}); err != nil {
					t.Fatal(err)
				}
			}
			for i, want := range []string{tt.left, tt.after} {
				d, err := l.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: tt.to, Count: 1, ID: "n" + strconv.Itoa(i)})
				if got := inWords(d); err != nil || got != want && want != "" {
					t.Errorf("%s, %v, want %s", got, err, want)
				}
				if d.Remaining < 0 {
					t.Errorf("%d remain", d.Remaining)
				}
				if d.Wait == 0 || d.Reason == Delayed {
					continue
				}
				c.Time = c.Add(d.Wait - time.Millisecond) // who waits as told is admitted, a millisecond less is too early
				for _, allowed := range []bool{false, true} {
					early, err := l.Status(t.Context(), Request{UserID: "u", Activity: "act", Policy: tt.to, Count: 1, ID: "w"})
					if err != nil || early.Allowed != allowed {
						t.Errorf("at %v: %s, %v, want allowed %v", c.Sub(start), inWords(early), err, allowed)
					}
					c.Time = c.Add(time.Millisecond)
				}
				return
			}
		})
	}
}
