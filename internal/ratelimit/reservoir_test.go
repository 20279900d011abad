package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// askColdly returns a function that asks for a place, each time as an instance that knows nothing.
func askColdly(t *testing.T, c *clock, text string) func(s Store, id string) Decision {
	return func(s Store, id string) Decision {
		t.Helper()
		return mustCheck(t, &Limiter{Store: s, Timeout: 5 * time.Second, Now: c.now}, request(policy.Must(text), id, 1))
	}
}

// A window of the reservoir ends between the lost answer and the retry. The
// ids of the two moments are in different sets, and each request has its own place.
func TestALostPlaceAcrossAGeneration(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		j := newJobs(t, "reservoir 2/10s ahead 1m")
		cold := &Limiter{Store: store, Timeout: 5 * time.Second, Now: j.clock.now}
		const before, after = 19_990 * time.Millisecond, 20_010 * time.Millisecond // start begins a generation
		j.clock.at(before)
		j.ask(cold, 3)
		others := func(_ context.Context, perform func() error) error {
			_ = perform()
			j.clock.at(after)
			j.ask(cold, 2)
			j.clock.at(before)
			return errors.New("connection reset")
		}
		f := &faulty{Store: store, faults: []fault{pass, others, pass}}
		lost := request(j.policy, "lost", 1)
		d := mustCheck(t, &Limiter{Store: f, Timeout: 5 * time.Second, Now: j.clock.now}, lost)
		if want := start.UnixMilli() + 20_000; d.Reason != Delayed || d.ReadyAt != want {
			t.Errorf("the lost place: %s, want the second one of the next window", inWords(d))
		}
		j.count(d)
		j.clock.at(after)
		if again := mustCheck(t, cold, lost); !again.Allowed || again.Reason != Duplicate {
			t.Errorf("its repeat on time: %s, want it allowed", inWords(again))
		}
		j.ask(cold, 1)
		j.within(map[int64]int{10: 2, 20: 2, 30: 2, 40: 1})
	})
}

// The item keeps a place as a note with the request's id. That note must not be
// read as a number of actions.
func TestAPlaceFoundAfterTwoLostAttemptsGrantsOneAction(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		ask := askColdly(t, newClock(), "reservoir 2/10s ahead 1m")
		ask(store, "first")
		// 1: lost before the write. 2: refused, because the item is not empty.
		// 3: performed, and the answer is lost. 4: finds the id.
		d := ask(&faulty{Store: store, faults: []fault{refuse, pass, lose, pass}}, "second")
		if d.Reason != OK || d.Granted != 1 || d.Used != 2 {
			t.Errorf("got %s with %d granted, want ok with 1", inWords(d), d.Granted)
		}
	})
}

// The windows of a reservoir can be shorter than the generations of ids. Then an id moves
// to and fro between two sets.
func TestARepeatInOneGenerationOfIDs(t *testing.T) {
	moments := []moment{}
	for second := range 14 {
		at := time.Duration(second) * time.Second
		moments = append(moments,
			moment{at: at, id: "a", want: "ok 1/2"},
			moment{at: at, id: "a", want: "duplicate 1/2"},
			moment{at: at, id: "b", want: "ok 2/2"},
			moment{at: at, by: "cold", id: "b", want: "duplicate 2/2"},
			moment{at: at, id: "c", want: "limited 2/2, wait 1s"},
		)
	}
	timeline(t, "reservoir 2/1s", moments)
}

// Two repeats of one late job come at once. They get one place.
func TestTwoLateRepeatsGetOnePlace(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		ask := askColdly(t, c, "reservoir 2/10s ahead 1m")
		for _, id := range []string{"a", "b", "c", "d"} {
			ask(store, id)
		}
		c.at(11 * time.Second) // c and d have the places of this window
		var second Decision
		twice := func(_ context.Context, perform func() error) error {
			second = ask(store, "a")
			return perform()
		}
		first := ask(&faulty{Store: store, faults: []fault{pass, twice, pass}}, "a")
		for _, d := range []Decision{first, second} {
			if d.Reason != Delayed || d.ReadyAt != start.UnixMilli()+20_000 || d.Waiting != 1 {
				t.Errorf("a late repeat: %s, want the first place of the next window", inWords(d))
			}
		}
		if first.Requests != 2 || second.Requests != 2 {
			t.Errorf("they took %d and %d requests, want 2: one that finds the id and one that moves it", first.Requests, second.Requests)
		}
		if d := ask(store, "e"); d.Waiting != 2 {
			t.Errorf("the next job: %s, want the second place of that window", inWords(d))
		}
	})
}

// The answer to the request that moves an id is lost. Its repeat finds the new place.
func TestALostMoveIsFound(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		ask := askColdly(t, c, "reservoir 2/10s ahead 1m")
		ask(store, "a")
		c.at(11 * time.Second)
		if d := ask(&faulty{Store: store, faults: []fault{pass, lose, pass}}, "a"); d.Reason != OK || d.Used != 1 || d.Requests != 3 {
			t.Errorf("after a lost answer: %s and %d requests, want ok 1/2 and 3", inWords(d), d.Requests)
		}
		if d := ask(store, "b"); d.Used != 2 {
			t.Errorf("%d places are taken, want 2: one for each job", d.Used)
		}
	})
}

// Copies of earlier requests arrive up to 5 s after an id has moved. None of them counts:
// neither the check's copy nor copies of earlier moves, even if the id is in the same set
// again.
func TestLateCopiesDoNotCountAfterAMove(t *testing.T) {
	for _, window := range []string{"1s", "2500ms", "5s"} {
		onEachStore(t, func(t *testing.T, store Store) {
			c, text := newClock(), "reservoir 100/"+window+" ahead 1m"
			ask := askColdly(t, c, text)
			copies := map[time.Duration][]func() error{}
			for i := range 12 {
				at := time.Duration(i) * policy.Must(text).Rates()[0].Window
				c.at(at)
				keep := func(_ context.Context, perform func() error) error {
					copies[at] = append(copies[at], perform)
					return perform()
				}
				if d := ask(&faulty{Store: store, faults: []fault{keep}}, "a"); d.Reason != OK || d.Used != 1 {
					t.Fatalf("at %v: %s, want the first place of its window", at, inWords(d))
				}
				for sent, late := range copies {
					for n := range late {
						if at-sent <= 5*time.Second {
							_ = late[n]()
						}
					}
				}
				if again := ask(store, "a"); again.Reason != Duplicate || again.Used != 1 {
					t.Fatalf("at %v: after late copies of its requests %s, want duplicate 1/100", at, inWords(again))
				}
			}
		})
	}
}

// How places are given, kept and given again.
func TestReservoirTimelines(t *testing.T) {
	stories(t, []story{
		{"a reservoir", "reservoir 2/10s ahead 30s", []moment{
			{at: 0, id: "a", want: "ok 1/2"},
			{at: 0, ask: Status, id: "b", want: "ok 1/2"},
			{at: 0, id: "b", want: "ok 2/2"},
			{at: sec, ask: Status, id: "c", want: "delayed 2/2, wait 9s, place at 10s after 0"},
			{at: sec, id: "c", want: "delayed 2/2, wait 9s, place at 10s after 0"},
			{at: sec, id: "d", want: "delayed 2/2, wait 9s, place at 10s after 1"},
			{at: sec, id: "e", want: "delayed 2/2, wait 19s, place at 20s after 2"},
			{at: 2 * sec, id: "c", want: "delayed 2/2, wait 8s, place at 10s after 1"}, // the same place, whose window is full by now
			{at: 2 * sec, id: "a", want: "duplicate 2/2"},
			{at: 9999 * time.Millisecond, id: "c2", readyAt: 10 * sec, want: "delayed, wait 1ms, place at 10s"}, // early
			{at: 9999 * time.Millisecond, ask: Status, id: "c2", readyAt: 10 * sec, want: "delayed, wait 1ms, place at 10s"},
			{at: 10 * sec, id: "c2", readyAt: 10 * sec, want: "ok"}, // on time
			{at: 10 * sec, ask: Status, id: "c2", readyAt: 10 * sec, want: "ok"},
			{at: 19999 * time.Millisecond, id: "d2", readyAt: 10 * sec, want: "ok"},
			{at: 20 * sec, id: "d2", readyAt: 10 * sec, want: "ok 2/2"}, // late: a new place
			{at: 20 * sec, id: "f", want: "delayed 2/2, wait 10s, place at 30s after 0"},
			{at: 0, id: "g", want: "delayed 2/2, wait 30s, place at 30s after 5"}, // the clock stepped back
			{at: 0, id: "h", want: "limited 2/2, wait 10s"},                       // more than 30 s ahead
			{at: 10 * sec, id: "h", want: "delayed 2/2, wait 30s, place at 40s after 4"},
			{at: 50 * sec, id: "i2", readyAt: 100 * sec, want: "delayed, wait 50s, place at 1m40s"}, // ahead may have been longer
			{at: 50 * sec, id: "i2", readyAt: 400 * 24 * time.Hour, want: "ok 1/2"},                 // never given: a new place
			{at: 60 * sec, ask: Status, id: "i", want: "ok 0/2"},                                    // unused places have passed
		}},
		// A request that repeats its id within 20 s keeps the place that it was given,
		// even if it came too late for an earlier one. After that, it takes another.
		{"a place is kept for 20 s", "reservoir 1/10s ahead 1m", []moment{
			{at: 6999 * time.Millisecond, id: "a", want: "ok 1/1"},
			{at: 6999 * time.Millisecond, id: "b", want: "delayed 1/1, wait 3.001s, place at 10s after 0"},
			{at: 6999 * time.Millisecond, id: "c", want: "delayed 1/1, wait 13.001s, place at 20s after 1"},
			{at: 6999 * time.Millisecond, id: "d", want: "delayed 1/1, wait 23.001s, place at 30s after 2"},
			{at: 6999 * time.Millisecond, id: "e", readyAt: -10 * sec, want: "delayed 1/1, wait 33.001s, place at 40s after 3"}, // late
			{at: 26999 * time.Millisecond, id: "d", want: "delayed 1/1, wait 3.001s, place at 30s after 0"},
			{at: 26999 * time.Millisecond, id: "e", readyAt: -10 * sec, want: "delayed 1/1, wait 13.001s, place at 40s after 1"},
			{at: 29 * sec, id: "d", want: "delayed 1/1, wait 21s, place at 50s after 2"},
		}},
		// A repeat gets the place of its id until the window of that place is over. Then it is a
		// late job: its id gets a new place, and later repeats get this one.
		{"a repeat after its window takes a new place", "reservoir 2/10s ahead 30s", []moment{
			{at: 0, id: "a", want: "ok 1/2"},
			{at: 0, id: "b", want: "ok 2/2"},
			{at: 0, id: "c", want: "delayed 2/2, wait 10s, place at 10s after 0"},
			{at: 9999 * time.Millisecond, id: "a", want: "duplicate 2/2"},
			{at: 10 * sec, ask: Status, id: "a", want: "ok 1/2"}, // as a check now
			{at: 10 * sec, id: "a", want: "ok 2/2"},              // in the current window, beside c
			{at: 10 * sec, id: "c", want: "duplicate 2/2"},       // its window is the current one
			{at: 10 * sec, id: "a", want: "duplicate 2/2"},       // its new place is, too
			{at: 10 * sec, ask: Status, id: "b", want: "delayed 2/2, wait 10s, place at 20s after 0"},
			{at: 10 * sec, id: "b", want: "delayed 2/2, wait 10s, place at 20s after 0"},
			{at: 19 * sec, id: "b", want: "delayed 2/2, wait 1s, place at 20s after 0"},
			{at: 19 * sec, ask: Status, id: "b", want: "delayed 2/2, wait 1s, place at 20s after 0"},
			{at: 20 * sec, id: "b", want: "duplicate 1/2"},
			{at: 20 * sec, id: "d", want: "ok 2/2"},
			{at: 20 * sec, id: "c", want: "delayed 2/2, wait 10s, place at 30s after 0"},
			{at: 29 * sec, by: "ahead", id: "c", want: "duplicate 1/2"}, // its clock shows 31 s
			{at: 29 * sec, id: "c", want: "delayed 2/2, wait 1s, place at 30s after 0"},
			{at: 29 * sec, by: "ahead", id: "d", want: "ok 2/2"},
			{at: 29 * sec, id: "d", want: "delayed 2/2, wait 1s, place at 30s after 1"}, // where the clock ahead put it
		}},
		// A clock that is ahead can move an id to the generation after the next one of another
		// clock, which finds it there.
		{"a moved id is found two generations ahead", "reservoir 2/1s ahead 10s", []moment{
			{at: 5500 * time.Millisecond, by: "ahead", id: "a", want: "ok 1/2"}, // at 7.5 s, in the second generation
			{at: 6500 * time.Millisecond, by: "ahead", id: "a", want: "ok 1/2"}, // moves it to the third one
			{at: 6600 * time.Millisecond, by: "cold", id: "a", want: "delayed 2/2, wait 1.4s, place at 8s after 2"},
		}},
		// Without a free place, a late repeat is refused and can come again.
		{"a late repeat without a place is refused", "reservoir 1/10s", []moment{
			{at: 0, id: "a", want: "ok 1/1"},
			{at: 10 * sec, id: "b", want: "ok 1/1"},
			{at: 11 * sec, ask: Status, id: "a", want: "limited 1/1, wait 9s"},
			{at: 11 * sec, id: "a", want: "limited 1/1, wait 9s"},
			{at: 20 * sec, id: "a", want: "ok 1/1"},
		}},
		// A late repeat counts in every limit of its policy, as each late job does.
		{"a late repeat counts in each limit", "jobs: reservoir 1/10s, all: 3/1h", []moment{
			{at: 0, id: "a", want: "ok 1/1", used: []int64{1, 1}},
			{at: 10 * sec, id: "a", want: "ok 1/1", used: []int64{1, 2}},
			{at: 11 * sec, id: "a", want: "duplicate 1/1", used: []int64{1, 2}},
			{at: 20 * sec, id: "a", want: "ok 3/3", used: []int64{1, 3}},
			{at: 30 * sec, id: "a", want: "limited 3/3, wait 45m30s for the all", used: []int64{0, 3}},
		}},
		// A check that presents the place that it was given is another request than the one without, and
		// its repeats are late, too.
		{"a late job that is late again", "reservoir 1/10s ahead 10s", []moment{
			{at: 0, id: "a", want: "ok 1/1"},
			{at: 0, id: "b", want: "delayed 1/1, wait 10s, place at 10s after 0"},
			{at: 20 * sec, id: "b", readyAt: 10 * sec, want: "ok 1/1"}, // late: counted again
			{at: 21 * sec, id: "b", readyAt: 10 * sec, want: "duplicate 1/1"},
			{at: 21 * sec, id: "c", want: "delayed 1/1, wait 9s, place at 30s after 0"},
			{at: 30 * sec, id: "b", readyAt: 10 * sec, want: "delayed 1/1, wait 10s, place at 40s after 0"},
			{at: 40 * sec, id: "b", readyAt: 10 * sec, want: "duplicate 1/1"},
			{at: 41 * sec, id: "b", readyAt: 40 * sec, want: "ok"},
		}},
	})
}
