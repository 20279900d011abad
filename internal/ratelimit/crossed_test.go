package ratelimit_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// shares returns what d says of each limit: of the only one, or of each of several.
func shares(d Decision) []int64 {
	if len(d.Each) == 0 {
		return []int64{d.Crossed}
	}
	var all []int64
	for _, l := range d.Each {
		all = append(all, l.Crossed)
	}
	return all
}

// Thirty callers with counts of 1 to 3 race in each of ten windows, on instances of
// their own. Whatever the order, each limit is crossed once at 100 %, and once at 80 %
// unless the same check crossed both.
func TestAShareIsCrossedOnceUnderARace(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit []int64 // of each limit; 0: it is no fixed window
	}{
		{"20/1m", []int64{20}},
		{"1/1m", []int64{1}},
		{"48/1m", []int64{48}},
		{"minute: 30/1m, day: 25/1m", []int64{30, 25}}, // only the second one can be full
		{"minute: 20/1m, log: log 50/1m", []int64{20, 0}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, store Store) {
				c := newClock()
				for range repeats(10) {
					race(t, store, c, policy.Must(tt.text), tt.limit)
					c.add(time.Minute)
				}
			})
		})
	}
}

func race(t *testing.T, store Store, c *clock, p policy.Policy, limits []int64) {
	t.Helper()
	var mu sync.Mutex
	crossed := make([]map[int64]int, len(limits)) // how many checks said each share, by limit
	for i := range crossed {
		crossed[i] = map[int64]int{}
	}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			l := &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now}
			r := request(p, strconv.FormatInt(c.now().Unix(), 10)+"-"+strconv.Itoa(i), min(int64(i%3+1), p.Most()))
			r.Alone, r.Fresh = false, true
			d, err := l.Check(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, share := range shares(d) {
				if share != 0 {
					crossed[i][share]++
				}
			}
		})
	}
	wg.Wait()
	last := mustCheck(t, &Limiter{Store: store, Now: c.now}, request(p, "full", p.Most())) // it is refused, and has the figures
	figures := last.Each
	if figures == nil {
		figures = []policy.Reading{last.Reading}
	}
	for i, limit := range limits {
		want := map[int64]int{}
		switch used := figures[i].Used; {
		case limit == 0:
		case used == limit && crossed[i][80] == 0: // one check crossed both
			want = map[int64]int{100: 1}
		case used == limit:
			want = map[int64]int{80: 1, 100: 1}
		case used >= (limit*80+99)/100:
			want = map[int64]int{80: 1}
		}
		if diff := cmp.Diff(want, crossed[i]); diff != "" {
			t.Errorf("%s: limit %d, %d used: how many checks crossed each share (-want +got):\n%s", p, i, figures[i].Used, diff)
		}
	}
}

// Two activities of a group race for one limit with counts of 1 to 3, and one action takes
// 1 or 5 of it. In units the shares are crossed once, whatever the order. In rounded
// actions they would be crossed twice, or never.
func TestAGroupWithMixedCostsCrossesOnceUnderARace(t *testing.T) {
	for _, limit := range []int64{100, 97, 20, 5} {
		t.Run(strconv.FormatInt(limit, 10), func(t *testing.T) {
			cheap := policy.Must(fmt.Sprintf("writes: %d/1m", limit))
			dear := policy.Must(fmt.Sprintf("posts: 99/1m, writes: %d/1m cost 5", limit))
			onEachStore(t, func(t *testing.T, store Store) {
				c := newClock()
				for range repeats(10) {
					crossed := mixedRace(t, store, c, cheap, dear)
					if once := crossed[100] == 1 && crossed[80] <= 1; !once || crossed[80] == 0 && limit > 80 {
						t.Errorf("%d checks crossed 80 %%, and %d crossed 100 %%", crossed[80], crossed[100])
					}
					c.add(time.Minute)
				}
			})
		})
	}
}

// mixedRace uses up one window of writes, and returns how many checks crossed each share.
func mixedRace(t *testing.T, store Store, c *clock, cheap, dear policy.Policy) map[int64]int {
	t.Helper()
	var mu sync.Mutex
	crossed := map[int64]int{}
	ask := func(id, activity string, p policy.Policy, n int64) bool {
		l := &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now}
		r := request(p.Beside(cheap, dear), c.now().Format(time.TimeOnly)+"-"+id, min(n, p.Most()))
		r.Activity, r.Group, r.Alone, r.Fresh = activity, "content", false, true
		d, err := l.Check(t.Context(), r)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, each := range d.Each {
			if each.Name == "writes" && each.Crossed != 0 {
				crossed[each.Crossed]++
			}
		}
		return d.Allowed
	}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			activity, p := "add_comment", cheap
			if i%2 == 0 {
				activity, p = "create_post", dear
			}
			ask(strconv.Itoa(i), activity, p, int64(i%3+1))
		})
	}
	wg.Wait()
	for i := 0; ask("last"+strconv.Itoa(i), "add_comment", cheap, 1); i++ { // what the race has left
	}
	return crossed
}

// Each row is one check of 10/1m, of which 7 were counted before, and what its
// decision says.
func TestWhichDecisionsSayThatTheyCrossed(t *testing.T) {
	ten := policy.Must("10/1m")
	for name, tt := range map[string]struct {
		faults []fault
		op     Op
		fresh  bool
		count  int64
		want   int64
	}{
		"the first attempt counts":              {faults: []fault{pass}, op: Check, count: 1, want: 80},
		"the second attempt counts":             {faults: []fault{refuse, pass}, op: Check, count: 1, want: 80},
		"a throttled attempt, then one counts":  {faults: []fault{throttle, pass}, op: Check, count: 1, want: 80},
		"counted, and the answer is lost":       {faults: []fault{lose, pass}, op: Check, count: 1},
		"counted, lost, with a receipt":         {faults: []fault{lose, pass}, op: Check, fresh: true, count: 1},
		"counted, and the answer hangs":         {faults: []fault{hangAfter, pass}, op: Check, fresh: true, count: 3},
		"an outage":                             {faults: []fault{refuse}, op: Check, count: 1},
		"an outage after the check was counted": {faults: []fault{lose, refuse}, op: Check, count: 1},
		"a refusal":                             {faults: []fault{pass}, op: Check, count: 4},
		"a status of what would cross":          {faults: []fault{pass}, op: Status, count: 1},
		"a reset":                               {faults: []fault{pass}, op: Reset, count: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			mustCheck(t, l, request(ten, "before", 7))
			store.set(tt.faults...)
			r := request(ten, "a", tt.count)
			r.Fresh = tt.fresh
			d, err := l.Decide(t.Context(), tt.op, r)
			if err != nil || d.Crossed != tt.want {
				t.Errorf("%s: %s, crossed %d, %v, want %d", name, inWords(d), d.Crossed, err, tt.want)
			}
			settle()
		})
	}
}

// A check is counted, its answer is lost, and another one crosses before the retry.
// The retry finds its id, and only the other one says that it crossed.
func TestARetryDoesNotSayWhatAnotherCrossed(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		ten := policy.Must("10/1m")
		plain := &Limiter{Store: store, Now: newClock().now}
		mustCheck(t, plain, request(ten, "before", 6))
		var other Decision
		f := &faulty{Store: store, faults: []fault{lose, func(_ context.Context, perform func() error) error {
			other = mustCheck(t, plain, request(ten, "other", 1))
			return perform()
		}}}
		l := &Limiter{Store: f, Now: newClock().now, NewBudget: noPauses(2)}
		r := request(ten, "a", 1)
		r.Fresh = true
		d := mustCheck(t, l, r)
		if d.Used != 8 || d.At == 0 || d.Crossed != 0 || other.Crossed != 80 {
			t.Errorf("%s, crossed %d; the other one %d, want 0 with a receipt, and 80", inWords(d), d.Crossed, other.Crossed)
		}
	})
}

func TestARepeatSaysNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, text := range []string{"10/1m", "200/1m", "minute: 10/1m, day: 200/1d"} {
			p := policy.Must(text)
			l := &Limiter{Store: store, Now: newClock().now, Memory: NewMemory(mib)}
			r := request(p, "r1", p.Most())
			r.UserID = text[:3]
			if d := mustCheck(t, l, r); d.Crossed != 100 {
				t.Errorf("%s: the first check crossed %d, want 100", text, d.Crossed)
			}
			for _, op := range []Op{Check, Status} {
				d, err := l.Decide(t.Context(), op, r)
				if err != nil || d.Reason != Duplicate || d.Crossed != 0 || len(d.Each) > 0 && d.Each[0].Crossed != 0 {
					t.Errorf("%s: a repeated %s: %s, crossed %d, %v, want a duplicate without", text, op, inWords(d), d.Crossed, err)
				}
			}
		}
	})
}

// Tiers share a count, but a tier with another number has shares of its own.
func TestATierHasItsOwnShares(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now}
	var got []string
	for i, step := range []struct {
		text  string
		count int64
	}{
		{"20/1m", 8},   // 80 % of 10, but only 40 % of 20
		{"10/1m", 1},   // 9 of 10: 80 % were passed by the other tier
		{"10/1m", 1},   // 10 of 10
		{"20/1m", 6},   // 16 of 20
		{"20/1m", 4},   // 20 of 20
		{"5/1m", 1},    // refused
		{"100/1m", 60}, // 80 of 100
	} {
		d := mustCheck(t, l, request(policy.Must(step.text), strconv.Itoa(i), step.count))
		got = append(got, fmt.Sprintf("%s: %d used, %d", step.text, d.Used, d.Crossed))
	}
	want := []string{"20/1m: 8 used, 0", "10/1m: 9 used, 0", "10/1m: 10 used, 100", "20/1m: 16 used, 80", "20/1m: 20 used, 100", "5/1m: 20 used, 0", "100/1m: 80 used, 80"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A delayed check is counted by every limit and has a receipt, so it crosses too.
func TestADelayedCheckCrossesALimitBesideTheReservoir(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now}
	p := policy.Must("second: reservoir 2/10s ahead 15m, day: 5/1d")
	var got [][]int64
	for i := range 5 {
		d := mustCheck(t, l, request(p, strconv.Itoa(i), 1))
		if wantPlace := i >= 2; (d.Reason == Delayed) != wantPlace {
			t.Fatalf("check %d: %s", i, inWords(d))
		}
		got = append(got, shares(d))
	}
	if diff := cmp.Diff([][]int64{{0, 0}, {0, 0}, {0, 0}, {0, 80}, {0, 100}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
