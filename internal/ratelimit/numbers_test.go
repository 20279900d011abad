package ratelimit_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// numbered returns the limits of text with n as the caller's number for each limit with a max.
func numbered(text string, n int64) policy.Policy { return with(policy.Must(text), n) }

func with(p policy.Policy, n int64) policy.Policy {
	return p.With(func(string) (int64, bool) { return n, true })
}

// scalable are limits with a max of 90, one of each kind and several, that allow 20 actions at
// once without a number, and as many as the number with one.
var scalable = []string{
	"20/1h max 90",
	"log 20/1h max 90",
	"sliding 20/1h max 90",
	"bucket 20/1h max 90",
	"20/day in Europe/Berlin max 90",
	"hour: 20/1h max 90, slots: log 20/1d max 90, pace: bucket 20/1h max 90",
}

// A numberRace is about one count. Each racer gives a number.
type numberRace struct {
	name  string
	makes func(id string, n int64) []Part // a racer's request; the last part has the number
	units func(r Request) int64           // that the request takes of the number
}

// races are of a user, of a room that users meet in, and of a group, where an action of the
// other activity takes two.
func races() (all []numberRace) {
	one := func(Request) int64 { return 1 }
	for _, text := range scalable {
		all = append(all, numberRace{text, func(id string, n int64) []Part { return []Part{{Request: request(numbered(text, n), id, 1)}} }, one})
	}
	all = append(all, numberRace{"a room", func(id string, n int64) []Part {
		parts := message("u"+id, "r", id, "100/1h", "20/1h")
		parts[1].Policy = numbered("20/1h max 90", n)
		return parts
	}, one})
	cheap, dear := policy.Must("a: 1000/1h, writes: 20/1h max 90"), policy.Must("b: 1000/1h, writes: 20/1h max 80 cost 2")
	return append(all, numberRace{"a group", func(id string, n int64) []Part {
		r := request(with(cheap.Beside(cheap, dear), n), id, 1)
		r.Activity, r.Group = "comment", "content"
		if i, _ := strconv.Atoi(id); i%5 == 0 {
			r.Activity, r.Policy = "post", with(dear.Beside(cheap, dear), n)
		}
		return []Part{{Request: r}}
	}, func(r Request) int64 {
		if r.Activity == "post" {
			return 2
		}
		return 1
	}})
}

// numberedLimit returns the figures of the limit that has the number.
func numberedLimit(d Decision) policy.Reading {
	all := d.Limits()
	return all[len(all)-1]
}

// An admittedBy is what a racer was told that was admitted.
type admittedBy struct {
	number, units int64 // the racer's number, and what it took of it
	policy.Reading
}

// run lets callers race, each as an instance of its own. Number returns the number of a racer.
// It returns the admissions in the order of what was counted then.
func (r numberRace) run(t *testing.T, store Store, callers int, number func(i int) int64) (admitted []admittedBy) {
	t.Helper()
	var mu sync.Mutex
	places := make(chan bool, 50) // each racer would otherwise open a connection
	atOnce(callers, func(i int) {
		places <- true
		defer func() { <-places }()
		l := &Limiter{Store: store, Timeout: time.Minute, Memory: NewMemory(mib), Now: newClock().now}
		parts := r.makes(strconv.Itoa(i), number(i))
		for j := range parts {
			parts[j].Fallback = false
		}
		var d Decision
		var err error
		if len(parts) > 1 {
			d, err = l.DecideAll(t.Context(), Check, parts, false)
		} else {
			d, err = l.Check(t.Context(), parts[0].Request)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			t.Error(err)
		case d.Allowed:
			admitted = append(admitted, admittedBy{number(i), r.units(parts[0].Request), numberedLimit(d)})
		}
	})
	slices.SortFunc(admitted, func(a, b admittedBy) int { // an action that takes two rounds up
		return cmp.Or(cmp.Compare(a.Used*a.units, b.Used*b.units), cmp.Compare(b.units, a.units))
	})
	return admitted
}

// Callers with one number, or with two, act at once. Together they get the larger number, and
// nobody with the smaller one gets more than that: in the order of what was counted, they are
// the first.
func TestRacersWithNumbers(t *testing.T) {
	const large = 60
	for _, r := range races() {
		for _, small := range []int64{30, large} {
			t.Run(fmt.Sprintf("%s, %d and %d", r.name, small, large), func(t *testing.T) {
				onEachStore(t, func(t *testing.T, store Store) {
					var units int64
					for _, a := range r.run(t, store, max(200, repeats(500)), func(i int) int64 { return []int64{small, large}[i%2] }) {
						units += a.units
						if a.Limit != a.number/a.units || a.Used > a.Limit {
							t.Errorf("with the number %d, a caller is told %d of %d", a.number, a.Used, a.Limit)
						}
						if used := a.Used * a.units; used != units && used != units+a.units-1 {
							t.Errorf("a caller is told that %d are used, want %d", used, units)
						}
					}
					if units != large {
						t.Errorf("%d admitted, want %d", units, large)
					}
				})
			})
		}
	}
}

// Each answer gets lost once, and each request is repeated: with the same number, with another
// one, and with one that is below what counts already. It is counted once.
func TestARepeatWithAnotherNumberIsCountedOnce(t *testing.T) {
	for _, text := range append(scalable, "20/1h max 900", "bucket 20/1h burst 30 max 900", "a: 20/1h max 900, b: 900/1d") {
		onEachStore(t, func(t *testing.T, store Store) {
			c := newClock()
			f := &faulty{Store: store}
			l := &Limiter{Store: f, Now: c.now, Memory: NewMemory(mib), NewBudget: noPauses(6)}
			cold := &Limiter{Store: f, Now: c.now, NewBudget: noPauses(6)}
			for i := range 10 {
				f.set(lose, pass)
				if d := mustCheck(t, l, request(numbered(text, 60), strconv.Itoa(i), 1)); d.Reason != OK {
					t.Fatalf("%s: request %d is told %s", text, i, inWords(d))
				}
				for _, n := range []int64{60, 90, 5, 1} {
					for _, by := range []*Limiter{l, cold} {
						c.add(200 * time.Millisecond)
						f.set(lose, pass)
						if d := mustCheck(t, by, request(numbered(text, n), strconv.Itoa(i), 1)); !d.Allowed || d.Used > int64(i)+1 {
							t.Fatalf("%s: request %d is repeated with the number %d, and told %s", text, i, n, inWords(d))
						}
					}
				}
			}
			f.set(pass)
			s := mustDo(t, l, Status, request(numbered(text, 90), "s", 1))
			if slices.ContainsFunc(s.Limits(), func(r policy.Reading) bool { return r.Used != 10 }) {
				t.Errorf("%s: %+v are used, want 10", text, s.Limits())
			}
		})
	}
}

// How long an id is remembered goes by the max, because any number can come with the repeat.
func TestIDsAreKeptByTheMax(t *testing.T) {
	for text, want := range map[string]Reason{"20/1h max 100": Duplicate, "20/1h max 101": OK, "200/1h max 1000 cost 10": Duplicate} {
		for _, numbers := range [][2]int64{{100, 100}, {100, 20}, {20, 100}} {
			c := newClock()
			l := &Limiter{Store: new(memstore.Store), Now: c.now}
			mustCheck(t, l, request(numbered(text, numbers[0]), "a", 1))
			c.add(20 * time.Second)
			if d := mustCheck(t, l, request(numbered(text, numbers[1]), "a", 1)); d.Reason != Duplicate {
				t.Errorf("%s: after 20 s, a repeat with the numbers %d: %s, want duplicate", text, numbers, inWords(d))
			}
			c.add(10 * time.Second)
			if d := mustCheck(t, l, request(numbered(text, numbers[1]), "a", 1)); d.Reason != want {
				t.Errorf("%s: after 30 s, a repeat with the numbers %d: %s, want %s", text, numbers, inWords(d), want)
			}
		}
	}
}

// In an outage, the memory decides by the number of each caller. Together they get the
// larger one, of which the table had counted some before.
func TestNumbersInAnOutage(t *testing.T) {
	for _, text := range scalable {
		l, store, _ := onClock(pass)
		mustCheck(t, l, request(numbered(text, 60), "before", 4))
		store.set(deny)
		allowed := 4
		for i := range 200 {
			n := []int64{30, 60}[i/100]
			d := mustCheck(t, l, request(numbered(text, n), strconv.Itoa(i), 1))
			if d.Allowed {
				allowed++
			}
			if want := int64(allowed); d.Limit != n || d.Used != want {
				t.Fatalf("%s with %d: %s, want %d used", text, n, inWords(d), want)
			}
			if d.Allowed && int64(allowed) > n {
				t.Fatalf("%s with %d: the memory admits %d", text, n, allowed)
			}
		}
		if allowed != 60 {
			t.Errorf("%s: %d are admitted, want 60", text, allowed)
		}
	}
}

// A refusal of a low number says nothing about a higher one, and the other way round: on the
// instance that gave it and on another one.
func TestNumbersOnTwoInstances(t *testing.T) {
	for _, text := range scalable {
		onEachStore(t, func(t *testing.T, store Store) {
			c := newClock()
			instance := func() *Limiter {
				return &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib), Timeout: 10 * time.Second}
			}
			a, b := instance(), instance()
			mustCheck(t, a, request(numbered(text, 20), "first", 20))
			for i, step := range []struct {
				by      *Limiter
				number  int64
				count   int64
				allowed bool
				used    int64
			}{
				{b, 20, 1, false, 20},
				{b, 21, 1, true, 21},
				{b, 21, 1, false, 21},
				{a, 21, 1, false, 21}, // a has seen 20
				{a, 90, 9, true, 30},
				{b, 29, 1, false, 30},
				{b, 35, 5, true, 35},
				{a, 30, 1, false, 35},
				{a, 35, 1, false, 35},
				{b, 90, 55, true, 90},
				{a, 1_000_000, 1, false, 90}, // as the max
				{b, 1, 1, false, 90},
			} {
				d := mustCheck(t, step.by, request(numbered(text, step.number), strconv.Itoa(i), step.count))
				r := numberedLimit(d)
				if d.Allowed != step.allowed || d.Requests > 2 {
					t.Fatalf("%s: step %d: %s after %d requests, want allowed %v", text, i, inWords(d), d.Requests, step.allowed)
				}
				if r.Used != step.used && d.Requests > 0 || r.Limit != min(90, step.number) {
					t.Errorf("%s: step %d: %d used of %d, want %d of %d", text, i, r.Used, r.Limit, step.used, min(90, step.number))
				}
			}
		})
	}
}
