package ratelimit_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// shares returns the shares that d crossed, by the name of the limit; "" is the only one.
func shares(d Decision) map[string]int64 {
	all := map[string]int64{}
	for _, l := range d.Limits() {
		if l.Crossed != 0 {
			all[l.Name] = l.Crossed
		}
	}
	return all
}

// crossings are how many checks said that they crossed a share of a limit.
type crossings map[string]map[int64]int

// race lets thirty callers with counts of 1 to 3 race in one window, on instances of their
// own, and then uses up what they left. Callers take turns with the activities.
func race(t *testing.T, store Store, c *clock, activities ...policy.Policy) crossings {
	t.Helper()
	var mu sync.Mutex
	crossed := crossings{}
	ask := func(id, n int) bool {
		p := activities[id%len(activities)]
		r := request(p.Beside(activities...), fmt.Sprint(c.now().Unix(), "-", id), min(int64(n), p.Max()))
		r.Activity, r.Fallback, r.Fresh = "act"+strconv.Itoa(id%len(activities)), false, true
		if len(activities) > 1 {
			r.Group = "group"
		}
		d, err := (&Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now}).Check(t.Context(), r)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for name, share := range shares(d) {
			if crossed[name] == nil {
				crossed[name] = map[int64]int{}
			}
			crossed[name][share]++
		}
		return d.Allowed
	}
	atOnce(30, func(id int) { ask(id, id%3+1) })
	for id := 30; ask(id*len(activities), 1); id++ { // of the first activity
	}
	return crossed
}

// Whatever the order of a race, each limit that is used up is crossed once at 100 %, and
// once at 80 % unless the same check crossed both. In a group, one action can take 1 or 5
// of the limit. In units the shares are crossed once. In rounded actions they would be
// crossed twice, or never.
func TestAShareIsCrossedOnceUnderARace(t *testing.T) {
	for _, tt := range []struct {
		texts []string // of one activity, or of the activities of a group
		limit string   // that is used up
		both  bool     // one check can cross both shares
	}{
		{[]string{"20/1m"}, "", true},
		{[]string{"1/1m"}, "", true},
		{[]string{"48/1m"}, "", false},
		{[]string{"minute: 30/1m, day: 25/1m"}, "day", false}, // only the second one can be full
		{[]string{"minute: 20/1m, log: log 50/1m"}, "minute", true},
		{[]string{"writes: 100/1m", "posts: 99/1m, writes: 100/1m cost 5"}, "writes", false},
		{[]string{"writes: 97/1m", "posts: 99/1m, writes: 97/1m cost 5"}, "writes", false},
		{[]string{"writes: 20/1m", "posts: 99/1m, writes: 20/1m cost 5"}, "writes", true},
		{[]string{"writes: 5/1m", "posts: 99/1m, writes: 5/1m cost 5"}, "writes", true},
	} {
		t.Run(strings.Join(tt.texts, " and "), func(t *testing.T) {
			var activities []policy.Policy
			for _, text := range tt.texts {
				activities = append(activities, policy.Must(text))
			}
			onEachStore(t, func(t *testing.T, store Store) {
				c := newClock()
				for range repeats(10) {
					crossed := race(t, store, c, activities...)
					at80 := crossed[tt.limit][80]
					if crossed[tt.limit][100] != 1 || at80 > 1 || at80 == 0 && !tt.both {
						t.Errorf("%d checks crossed 80 %%, and %d crossed 100 %%", at80, crossed[tt.limit][100])
					}
					for name, count := range crossed {
						if name == "log" || name != tt.limit && (count[80] > 1 || count[100] > 0) {
							t.Errorf("the limit %s was crossed: %v", name, count)
						}
					}
					c.add(time.Minute)
				}
			})
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
			r := request(p, "r1", p.Max())
			r.UserID = text[:3]
			if d := mustCheck(t, l, r); d.Crossed != 100 {
				t.Errorf("%s: the first check crossed %d, want 100", text, d.Crossed)
			}
			for _, op := range []Op{Check, Status} {
				d, err := l.Decide(t.Context(), op, r)
				if err != nil || d.Reason != Duplicate || len(shares(d)) > 0 {
					t.Errorf("%s: a repeated %s: %s, crossed %d, %v, want a duplicate without", text, op, inWords(d), d.Crossed, err)
				}
			}
		}
	})
}

// The user's check crosses a share, the room refuses, and the user's count can't be given back.
// The refusal says nothing of it.
func TestARefusalSaysNothing(t *testing.T) {
	for _, text := range []string{"10/1m", "1/1m"} {
		f := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
		l := &Limiter{Store: f, Now: newClock().now, NewBudget: noPauses(1)}
		room := message("other", "r", "full", text, "1/1m")[1]
		mustCheck(t, l, room.Request)
		f.set(pass, pass, refuse)
		parts := message("u", "r", "a", text, "1/1m")
		for i := range int64(8) {
			if r := parts[0].Request; r.Policy.Max() > 1 && i < 7 {
				r.ID = "before " + strconv.FormatInt(i, 10)
				mustCheck(t, &Limiter{Store: f.Store, Now: newClock().now}, r)
			}
		}
		d, err := l.DecideAll(t.Context(), Check, parts, false)
		if err != nil || d.Allowed || d.LimitedBy != "room" || d.Each[0].Used == 0 {
			t.Fatalf("%s: %+v, %v, want a refusal by the room after the user was counted", text, d, err)
		}
		if d.Crossed != 0 || len(shares(d)) > 0 {
			t.Errorf("%s: a refusal has crossed %d and %v, want nothing", text, d.Crossed, shares(d))
		}
	}
}

// Tiers share a count, but a tier with another number has shares of its own.
func TestATierHasItsOwnShares(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now}
	for i, step := range []struct {
		text  string
		count int64
		want  string
	}{
		{"20/1m", 8, "8 used, 0"},     // 80 % of 10, but only 40 % of 20
		{"10/1m", 1, "9 used, 0"},     // 80 % were passed by the other tier
		{"10/1m", 1, "10 used, 100"},  // 10 of 10
		{"20/1m", 6, "16 used, 80"},   // 16 of 20
		{"20/1m", 4, "20 used, 100"},  // 20 of 20
		{"5/1m", 1, "20 used, 0"},     // refused
		{"100/1m", 60, "80 used, 80"}, // 80 of 100
	} {
		d := mustCheck(t, l, request(policy.Must(step.text), strconv.Itoa(i), step.count))
		if got := fmt.Sprintf("%d used, %d", d.Used, d.Crossed); got != step.want {
			t.Errorf("check %d of %s: %s, want %s", i, step.text, got, step.want)
		}
	}
}

// A delayed check is counted by every limit and has a receipt, so it crosses too.
func TestADelayedCheckCrossesALimitBesideTheReservoir(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now}
	p := policy.Must("second: reservoir 2/10s ahead 15m, day: 5/1d")
	for i, want := range []int64{0, 0, 0, 80, 100} {
		d := mustCheck(t, l, request(p, strconv.Itoa(i), 1))
		if (d.Reason == Delayed) != (i >= 2) || shares(d)["day"] != want {
			t.Errorf("check %d: %s, crossed %v, want %d of the day", i, inWords(d), shares(d), want)
		}
	}
}
