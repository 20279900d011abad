package ratelimit_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A reservoir gives places alone while some requests get through, two in a row. No window
// has more than the limit, from memory and from the table together.
func TestPlacesAloneStayWithinEachWindow(t *testing.T) {
	for _, text := range []string{"reservoir 2/10s ahead 1m", "reservoir 3/10s ahead 15m", "jobs: reservoir 2/10s ahead 1m, day: 200/1d"} {
		for _, through := range []int{2, 3, 7, 25} {
			p := policy.Must(text)
			c := newClock()
			requests := 0
			l, _ := newFaulty(func(ctx context.Context, perform func() error) error {
				if requests++; requests%(2*through) < 2 {
					return pass(ctx, perform)
				}
				return deny(ctx, perform)
			})
			l.Now, l.Timeout = c.now, 0 // a probe ends with its decision
			places, alone, table := map[int64]int{}, 0, 0
			for i := range 2000 { // fewer would not show both, the memory and the table
				c.at(time.Duration(i) * 430 * time.Millisecond)
				d := mustCheck(t, l, request(p, strconv.Itoa(i), 1))
				switch {
				case !counted(d):
					continue
				case d.Reason == Unavailable || d.Outage != nil:
					alone++
				default:
					table++
				}
				places[max(d.ReadyAt, c.now().UnixMilli())/10_000]++
			}
			limit := int(p.Rates()[0].Limit)
			for window, n := range places {
				if n > limit {
					t.Errorf("%s, one of %d requests gets through: window %d has %d places, want at most %d", text, through, window, n, limit)
				}
			}
			if alone == 0 || table == 0 {
				t.Errorf("%s, one of %d: %d places alone, %d from the table, want some", text, through, alone, table)
			}
		}
	}
}

// jobs asks for places and counts them by their windows, in seconds from start.
type jobs struct {
	t      testing.TB
	clock  *clock
	policy policy.Policy
	asked  int
	places map[int64]int
}

func newJobs(t testing.TB, text string) *jobs {
	t.Helper()
	return &jobs{t: t, clock: newClock(), policy: policy.Must(text), places: map[int64]int{}}
}

// outage gives n places from memory. Then the table is back, and is probed.
func (j *jobs) outage(n int) (*Limiter, *faulty) {
	j.t.Helper()
	l, store := newFaulty(deny)
	l.Now = j.clock.now
	j.ask(l, n)
	store.set(pass)
	j.clock.at(6 * time.Second) // the circuit's next probe
	return l, store
}

// ask asks n times and returns the last decision.
func (j *jobs) ask(l *Limiter, n int) (d Decision) {
	j.t.Helper()
	for range n {
		j.asked++
		if d = mustCheck(j.t, l, request(j.policy, "job"+strconv.Itoa(j.asked), 1)); counted(d) {
			j.count(d)
		}
	}
	return d
}

func (j *jobs) count(d Decision) {
	window := j.policy.Rates()[0].Window.Milliseconds()
	at := max(d.ReadyAt, j.clock.now().UnixMilli()) - start.UnixMilli()
	j.places[at/window*window/1000]++
}

// within checks that these windows, and no others, have these many places.
func (j *jobs) within(want map[int64]int) {
	j.t.Helper()
	for window := range want {
		if j.places[window] != want[window] {
			j.t.Errorf("second %d has %d places, want %d: %v", window, j.places[window], want[window], j.places)
		}
	}
	if len(j.places) != len(want) {
		j.t.Errorf("windows %v have places, want %v", j.places, want)
	}
}

// 60 jobs get places from memory, and then the table is back. The next 60 get the places
// after those, in one request each, and so do the jobs of an instance that knows nothing.
func TestPlacesFromMemoryAreSkipped(t *testing.T) {
	for _, text := range []string{"reservoir 10/10s ahead 15m", "jobs: reservoir 10/10s ahead 15m, day: 500/1d"} {
		onEachStore(t, func(t *testing.T, store Store) {
			j := newJobs(t, text)
			l, faulty := newFaulty(deny)
			faulty.Store, l.Now = store, j.clock.now
			l.NewBudget = noPauses(3) // no answer is late, however slow this machine is
			j.ask(l, 60)
			j.within(map[int64]int{0: 10, 10: 10, 20: 10, 30: 10, 40: 10, 50: 10})
			faulty.set(pass)
			j.clock.at(6 * time.Second) // the circuit's next probe
			j.ask(l, 1)
			for range 30 {
				if d := j.ask(l, 1); d.Requests != 1 || d.Reason != Delayed {
					t.Errorf("%s after %d requests, want a later place after one", inWords(d), d.Requests)
				}
			}
			other := &Limiter{Store: store, Timeout: 5 * time.Second, Now: j.clock.now}
			j.ask(other, 9)
			j.ask(l, 20)
			j.within(map[int64]int{0: 10, 10: 10, 20: 10, 30: 10, 40: 10, 50: 10, 60: 10, 70: 10, 80: 10, 90: 10, 100: 10, 110: 10})
		})
	}
}

// While the first check after an outage is under way, the table does not answer another one,
// which gets a place from memory. The two get different ones.
func TestPlacesFromMemoryBesideTheFirstAnswer(t *testing.T) {
	j := newJobs(t, "reservoir 2/10s ahead 15m")
	l, store := newFaulty(deny)
	l.Now, l.Timeout = j.clock.now, 0 // a probe ends with its decision
	j.ask(l, 3)
	j.clock.at(6 * time.Second)
	beside := func(_ context.Context, perform func() error) error {
		if d := j.ask(l, 1); d.Outage == nil {
			t.Errorf("%s, want it from memory", inWords(d))
		}
		return perform()
	}
	store.set(pass, beside, deny, pass) // the probe, the check and the one beside it
	if d := j.ask(l, 1); d.Outage != nil {
		t.Errorf("%v, want it from the table", d.Outage)
	}
	j.within(map[int64]int{0: 2, 10: 2, 20: 1})
}

// A write that was not performed keeps no place, whether the table refused it or a freeze held
// the check up until it was too late to send it.
func TestAWriteThatWasNotPerformedKeepsNoPlace(t *testing.T) {
	for name, fails := range map[string]func(j *jobs, store *faulty){
		"throttled": func(_ *jobs, store *faulty) { store.set(pass, throttle) },
		"frozen": func(j *jobs, store *faulty) {
			store.set(func(_ context.Context, perform func() error) error { // the probe
				j.clock.add(6 * time.Second)
				return perform()
			}, pass)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJobs(t, "reservoir 2/1m ahead 15m")
			l, store := newFaulty(deny)
			l.Now, l.NewBudget = j.clock.now, noPauses(1)
			j.ask(l, 3)
			j.clock.at(6 * time.Second)
			fails(j, store)
			if d := j.ask(l, 1); d.Outage == nil {
				t.Errorf("%s, want it from memory", inWords(d))
			}
			j.within(map[int64]int{0: 2, 60: 2})
		})
	}
}

// Many ask at once when the table comes back.
func TestManyAskWhenTheTableIsBack(t *testing.T) {
	j := newJobs(t, "reservoir 10/10s ahead 15m")
	l, _ := j.outage(55)
	var mu sync.Mutex
	atOnce(40, func(n int) {
		d, err := l.Check(t.Context(), request(j.policy, "at once "+strconv.Itoa(n), 1))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		} else if counted(d) {
			j.count(d)
		}
	})
	for window, n := range j.places {
		if n > 10 {
			t.Errorf("second %d has %d places, want at most 10: %v", window, n, j.places)
		}
	}
}

// A limit beside the reservoir refuses checks after an outage. They keep no places.
func TestARefusedCheckSkipsNoPlace(t *testing.T) {
	j := newJobs(t, "jobs: reservoir 2/10s ahead 1m, all: 4/1h")
	l, store := j.outage(1)
	for range 4 { // on an instance that knows nothing of the outage
		j.ask(&Limiter{Store: store, Timeout: 5 * time.Second, Now: j.clock.now}, 1)
	}
	for n := range 5 {
		j.clock.at(6*time.Second + time.Duration(n)*1001*time.Millisecond/4)
		if d := j.ask(l, 1); d.LimitedBy != "all" {
			t.Errorf("%s, want a refusal by the other limit", inWords(d))
		}
	}
	if held := l.Memory.Recall(Key{UserID: "u", Activity: "act"}).Fallback.State.Get("jobs_t"); held != start.UnixMilli()*1_000_000+1 {
		t.Errorf("the memory keeps the ticket %d, want the one place that was given from it", held)
	}
}
