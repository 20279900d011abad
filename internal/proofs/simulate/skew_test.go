package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A pair is two instances on one store. The second clock is ahead of the right
// one.
type pair struct {
	policy    policy.Policy
	now       int64 // by the right clock
	ids       int
	instances [2]*ratelimit.Limiter
	admitted  []int64 // when, by the right clock; a place counts when it comes up
}

func newPair(p policy.Policy, start, ahead int64) *pair {
	d := &pair{policy: p, now: start}
	store := new(memstore.Store)
	for i := range d.instances {
		d.instances[i] = &ratelimit.Limiter{
			Store: store, Now: func() time.Time { return time.UnixMilli(d.now + int64(i)*ahead) },
		}
	}
	return d
}

// ask sends a check to one of the instances. An empty id stands for a new one.
func (d *pair) ask(t *testing.T, instance int, id string) ratelimit.Decision {
	t.Helper()
	if id == "" {
		d.ids++
		id = strconv.Itoa(d.ids)
	}
	r := ratelimit.Request{UserID: "u", Activity: "act", Policy: d.policy, Count: 1, ID: id}
	got, err := d.instances[instance].Check(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Reason == ratelimit.OK {
		d.admitted = append(d.admitted, d.now)
	}
	return got
}

// An effect is what clocks that differ did to a policy.
type effect struct {
	most    int   // actions admitted in the time of one window
	refused int64 // ms that a caller of the right clock waited once the clock ahead had stopped
	twice   int   // of a hundred repeats, how many counted twice
}

// effects returns the worst effect that clocks so far apart had in many runs.
func effects(t *testing.T, text string, ahead int64, seeds int) (worst effect) {
	t.Helper()
	p := policy.Must(text).AtOnce()
	window := p.Rates()[0].Window.Milliseconds()
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		d := newPair(p, begin+random.Int64N(10*window), ahead)
		for end := d.now + 4*window; d.now < end; {
			for range random.IntN(12) {
				d.ask(t, random.IntN(2), "")
			}
			d.now += random.Int64N(window / 3)
		}
		stopped := d.now
		for !d.ask(t, 0, "").Allowed && d.now < stopped+10*window+10*ahead {
			d.now += 100
		}
		worst.refused = max(worst.refused, d.now-stopped)
		first := 0
		for last, at := range d.admitted {
			for d.admitted[first] <= at-window {
				first++
			}
			worst.most = max(worst.most, last-first+1)
		}
		worst.twice += repeated(t, newPair(p, begin+random.Int64N(10*window), ahead), 100/seeds)
	}
	return worst
}

// repeated returns how many of n repeats counted twice. Between a request and its
// repeat, the other instance answers a request.
func repeated(t *testing.T, d *pair, n int) (twice int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprint("r", i)
		first := d.ask(t, i%2, id)
		d.now += 500
		d.ask(t, 1-i%2, "")
		d.now += 500
		if again := d.ask(t, i%2, id); first.Reason == ratelimit.OK && again.Reason == ratelimit.OK {
			twice++
		}
		d.now += 10 * d.policy.Rates()[0].Window.Milliseconds()
	}
	return twice
}

// apart is how far clocks are apart in the table of effects, in milliseconds.
var apart = []int64{0, 2000, 90_000, 200_000}

// worstAgreed is how many actions a kind with a limit of 10 admits in the time of one window if
// clocks agree, by docs/policies.md. A kind without an entry admits 10. A lockout that locks for
// a window or longer admits 9 at the end of one series and 10 at the beginning of the next.
var worstAgreed = map[string]int{"fixed": 20, "bucket": 20, "sliding": 20, "reservoir": 20, "lockout": 19}

// measureSkew returns a table of what clocks can do that differ by more than the
// contract assumes. Not more than twice as much as otherwise gets through.
func measureSkew(t *testing.T) findings.Table {
	t.Helper()
	table := findings.Table{
		Title: "What clocks that differ can do: two instances, the second clock is ahead",
		Head:  []string{"limit", "clocks apart", "most actions admitted in one window's time", "longest refusal by the right clock after the clock ahead has stopped", "repeats counted twice"},
	}
	const limit, minute = 10, 60_000
	for _, k := range policy.Kinds() {
		text := strings.Replace(small(k, "10/1m"), " for 8s to 20s", " for 1m", 1)
		for _, ahead := range apart {
			e := effects(t, text, ahead, prove.Bound(4, 100))
			table.Rows = append(table.Rows, []string{
				policy.Must(text).AtOnce().String(), (time.Duration(ahead) * time.Millisecond).String(),
				fmt.Sprintf("%d of %d", e.most, limit), (time.Duration(e.refused) * time.Millisecond).String(), fmt.Sprintf("%d %%", e.twice),
			})
			if k.Name == "sliding" && ahead > 2*minute {
				continue // a known gap: such a clock removes the counters of the others, so nothing bounds them
			}
			if k.Name == "lockout" && ahead > minute {
				continue // another one: each clock ends the series that the other one has begun
			}
			most := max(limit, worstAgreed[k.Name])
			if ahead > 0 {
				most *= 2
			}
			if e.most > most {
				t.Errorf("%s with clocks %d ms apart: %d admitted in one window's time, want at most %d", text, ahead, e.most, most)
			}
		}
	}
	return table
}
