package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// attempts is a budget of so many attempts without pauses.
type attempts int

func (a *attempts) Next(context.Context, bool) (time.Duration, bool) {
	*a--
	return 0, *a >= 0
}

// An interleaving drives one decision through a sequence of faults, with other
// requests in between.
type interleaving struct {
	store  *memstore.Store
	policy policy.Policy
	clock  *clock
	others uint             // bit i: another request comes before attempt i
	late   []func() error   // requests that are still on their way
	counts map[string]int64 // actions that each request was told are counted
	sent   int
}

// other has another request of one action come, and notes what it is told.
func (in *interleaving) other(t *testing.T, id string) {
	t.Helper()
	l := &Limiter{Store: in.store, Now: in.clock.now}
	in.counts[id] = mustCheck(t, l, request(in.policy, id, 1)).Granted
}

// wrap returns the fault that happens to the next attempt. Requests that are late
// arrive after it.
func (in *interleaving) wrap(t *testing.T, f fault) fault {
	t.Helper()
	return func(ctx context.Context, perform func() error) error {
		if in.others>>in.sent&1 == 1 {
			in.other(t, fmt.Sprint("other", in.sent))
		}
		in.sent++
		arriving := in.late
		in.late = nil
		defer func() {
			for _, arrive := range arriving {
				_ = arrive()
			}
		}()
		if f == nil { // late: it arrives after the next attempt, or after the decision
			in.late = []func() error{perform}
			return errors.New("timeout")
		}
		return f(ctx, perform)
	}
}

// used returns how many actions the item counts.
func (in *interleaving) used(t *testing.T) int64 {
	t.Helper()
	l := &Limiter{Store: in.store, Now: in.clock.now}
	d, err := l.Decide(t.Context(), Status, request(in.policy, "status", 1))
	if err != nil {
		t.Fatal(err)
	}
	return d.Used
}

// told returns how many actions all requests were told are counted.
func (in *interleaving) told() (sum int64) {
	for _, n := range in.counts {
		sum += n
	}
	return sum
}

// mostFaults is the length of a sequence of faults.
const mostFaults = 4

// sequences calls run with every sequence of faults. Run returns how many of them
// it used; sequences that differ only in the others are left out.
func sequences(run func(faults []fault, name string) (used int)) {
	faults := []fault{pass, lose, refuse, throttle, nil}
	names := []string{"pass ", "lose ", "refuse ", "throttle ", "late "}
	size := 1
	for range mostFaults {
		size *= len(faults)
	}
	for n := 0; n < size; {
		var sequence []fault
		var name strings.Builder
		for unit := size / len(faults); unit > 0; unit /= len(faults) {
			sequence = append(sequence, faults[n/unit%len(faults)])
			name.WriteString(names[n/unit%len(faults)])
		}
		same := 1 // sequences that begin alike
		for range mostFaults - run(sequence, name.String()) {
			same *= len(faults)
		}
		n += same
	}
}

// Every sequence of four faults, with and without others in between: a decision
// counts exactly what it says, a refusal counts nothing, and the receipt gives back
// exactly that. A request that arrives late changes nothing.
func TestEveryInterleavingCountsExactlyWhatItSays(t *testing.T) {
	for _, text := range []string{"4/1m", "101/1m", "log 4/1h", "bucket 4/1m", "sliding 4/1h", "minute: 4/1m, day: 9/1d"} {
		p := policy.Must(text)
		for others := range uint(1 << mostFaults) {
			for _, partial := range []bool{false, true} {
				sequences(func(faults []fault, name string) int {
					in := &interleaving{store: new(memstore.Store), policy: p, clock: newClock(), others: others, counts: map[string]int64{}}
					if p.Most() > 4 { // fill it until 4 are free
						l := &Limiter{Store: in.store, Now: in.clock.now}
						in.counts["rest"] = mustCheck(t, l, request(p, "rest", p.Most()-4)).Granted
					}
					store := &faulty{Store: in.store}
					for _, f := range faults {
						store.faults = append(store.faults, in.wrap(t, f))
					}
					return in.decide(t, store, partial, fmt.Sprintf("%s: %swith others %04b, partial %v", text, name, others, partial))
				})
			}
		}
	}
}

// decide runs the decision and checks what it says against the item. It returns how
// many faults it used.
func (in *interleaving) decide(t *testing.T, store *faulty, partial bool, name string) (used int) {
	t.Helper()
	l := &Limiter{Store: store, Now: in.clock.now, NewBudget: func() Budget { a := attempts(mostFaults); return &a }}
	r := request(in.policy, "mine", 3)
	r.Alone, r.Fresh, r.Partial = false, true, partial
	d, err := l.Check(t.Context(), r)
	sent := in.sent
	for _, arrive := range in.late {
		_ = arrive()
	}
	if err != nil {
		return sent // the outcome is unknown
	}
	in.counts["mine"] = d.Granted
	if used := in.used(t); used != in.told() {
		t.Fatalf("%s: %s, granted %d, but the item counts %d and %v were told", name, inWords(d), d.Granted, used, in.counts)
	}
	if d.At == 0 {
		if d.Granted > 0 {
			t.Fatalf("%s: %s has no receipt", name, inWords(d))
		}
		return sent
	}
	r.At, r.Count = d.At, d.Granted
	store.faults = []fault{pass, lose, pass}
	if _, err := l.Decide(t.Context(), Release, r); err != nil {
		t.Fatalf("%s: Release: %v", name, err)
	}
	in.counts["mine"] = 0
	if used := in.used(t); used != in.told() {
		t.Fatalf("%s: after the release the item counts %d and %v were told", name, used, in.counts)
	}
	return sent
}

// A place that is given under any sequence of faults belongs to one request only.
func TestEveryInterleavingGivesEachPlaceOnce(t *testing.T) {
	p := policy.Must("reservoir 2/10s ahead 1m")
	for others := range uint(1 << mostFaults) {
		sequences(func(faults []fault, name string) int {
			in := &interleaving{store: new(memstore.Store), policy: p, clock: newClock(), others: others, counts: map[string]int64{}}
			store := &faulty{Store: in.store}
			for _, f := range faults {
				store.faults = append(store.faults, in.wrap(t, f))
			}
			l := &Limiter{Store: store, Now: in.clock.now, NewBudget: func() Budget { a := attempts(mostFaults); return &a }}
			r := request(p, "mine", 1)
			r.Alone, r.Fresh = false, true
			d, err := l.Check(t.Context(), r)
			if err != nil {
				return in.sent
			}
			places := map[int64]int{}
			for id := range in.counts {
				places[in.place(t, id)]++
			}
			mine := in.place(t, "mine")
			if places[mine]++; mine != max(d.ReadyAt, start.UnixMilli()) {
				t.Fatalf("%swith others %04b: told %s, and the item has the place %d", name, others, inWords(d), mine)
			}
			for at, n := range places {
				if n > 2 {
					t.Fatalf("%swith others %04b: %d places at %d, want at most 2", name, others, n, at)
				}
			}
			return in.sent
		})
	}
}

// place returns the place that a repeat of the request is told; now if it is on
// time.
func (in *interleaving) place(t *testing.T, id string) int64 {
	t.Helper()
	d := mustCheck(t, &Limiter{Store: in.store, Now: in.clock.now}, request(in.policy, id, 1))
	if d.Reason == OK {
		t.Fatalf("%s is counted again", id)
	}
	return max(d.ReadyAt, start.UnixMilli())
}
