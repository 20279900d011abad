package ratelimit_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// 24 callers act at once on one key. Exactly the capacity is admitted, and a
// reservoir gives the others the places that follow.
func TestExactlyTheCapacityUnderARace(t *testing.T) {
	const callers, free = 24, 15 // a wider policy is filled until so many are free
	onEachSubject(t, func(t *testing.T, s subject) {
		onEachStore(t, func(t *testing.T, store Store) {
			p := s.policy()
			// Each caller is an instance of its own.
			own := func() *Limiter {
				return &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: newClock().now}
			}
			if rest := remaining(p) - free; rest > 0 {
				mustCheck(t, own(), request(p, "rest", rest))
			}
			var mu sync.Mutex
			allowed, places := 0, map[int64]int{}
			atOnce(callers, func(i int) {
				r := request(p, strconv.Itoa(i), 1)
				r.Fallback = false
				d, err := own().Check(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if d.Allowed {
					allowed++
				}
				if d.Reason == Delayed {
					places[d.ReadyAt-start.UnixMilli()]++
				}
			})
			if want := min(remaining(p), free); int64(allowed) != want {
				t.Errorf("%d of %d admitted at once, want %d", allowed, callers, want)
			}
			if p.Queues() {
				if diff := cmp.Diff(map[int64]int{10_000: 10, 20_000: 4}, places); diff != "" {
					t.Errorf("places by the start of their window (-want +got):\n%s", diff)
				}
			}
		})
	})
}

// A cold process needs one request for a fixed window, an interval and a sliding
// counter of up to 65. Every other policy needs at most two.
func TestRequestsOfAColdDecision(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		t.Parallel()
		proxy := dynamotest.NewProxy(t)
		store := dynamostore.New(dynamotest.Config(proxy.URL()), dynamotest.Table(t))
		p := s.policy()
		c := newClock()
		worst, all := 0, 0
		const decisions = 60
		for i := range decisions {
			c.add(time.Duration(i%7) * longest(p) / 60)
			cold := &Limiter{Store: store, Timeout: time.Minute, Now: c.now}
			d := mustCheck(t, cold, request(p, strconv.Itoa(i), 1))
			worst, all = max(worst, d.Requests), all+d.Requests
		}
		counts := proxy.Counts()
		if worst > s.cold || counts["UpdateItem"] != all || len(counts) != 1 {
			t.Errorf("a decision takes up to %d requests, want at most %d; %v in all for %d decisions", worst, s.cold, counts, decisions)
		}
		t.Logf("%.2f requests for each decision of a cold process", float64(all)/decisions)
	})
}

// A cold process needs at most two requests wherever the limit was lowered or
// raised before.
func TestRequestsOfAColdDecisionAfterAChange(t *testing.T) {
	for _, tt := range [][2]string{
		{"log 100/12h", "log 50/12h"},
		{"log 50/12h", "log 100/12h"},
		{"bucket 1/12h", "bucket 1/5s"},
		{"10/1m", "5/1m"},
		{"200/1m", "100/1m"},
		{"sliding 60/1h", "sliding 30/1h"},
		{"reservoir 10/10s ahead 15m", "reservoir 5/10s ahead 15m"},
		{"minute: 10/1m, hour: log 100/1h", "minute: 5/1m, hour: log 50/1h"},
	} {
		store, c := new(memstore.Store), newClock()
		p := policy.Must(tt[0])
		for i := range 90 {
			c.add(longest(p) / 200)
			text := tt[0]
			if i > 60 {
				text = tt[1]
			}
			cold := &Limiter{Store: store, Now: c.now}
			if d := mustCheck(t, cold, request(policy.Must(text), strconv.Itoa(i), 1)); d.Requests > 2 {
				t.Errorf("%s after %s: decision %d took %d requests, want at most 2", tt[1], tt[0], i, d.Requests)
			}
		}
	}
}

// An insistent is a user who has 20 actions a day, and sends each of them twice in a busy room.
type insistent struct {
	name      string
	instances [2]*Limiter

	mu       sync.Mutex
	admitted map[string]bool // ids that were sent, and whether an attempt was admitted
	over     bool            // an attempt was refused by the user's own limit
}

// parts returns the parts of an action with this id.
func (u *insistent) parts(id string) []Part {
	r := Request{UserID: u.name, Activity: "act", Policy: policy.Must("20/1d"), Count: 1, ID: id}
	return []Part{{Request: r}, {Request: inBusyRoom(r), Subject: "room"}}
}

func inBusyRoom(r Request) Request {
	r.UserID, r.For, r.Policy = " room r", r.UserID, policy.Must("bucket 50/1s")
	return r
}

// crowd lets others take all places that the room has, again and again until ctx ends.
func crowd(ctx context.Context, t *testing.T, instance func() *Limiter, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		r := inBusyRoom(Request{UserID: "others", Activity: "act", Count: 50, Partial: true, Fresh: true, ID: name + strconv.Itoa(n)})
		if _, err := instance().Check(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
}

// send sends an action to one of the instances.
func (u *insistent) send(t *testing.T, instance int, id string) {
	d, err := u.instances[instance].DecideAll(t.Context(), Check, u.parts(id), false)
	if err != nil || d.Outage != nil {
		t.Errorf("%s of %s: %s, error %v", id, u.name, inWords(d), err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.admitted[id] = u.admitted[id] || d.Allowed
	u.over = u.over || d.LimitedBy == "act"
}

// insist sends actions until the user's own limit refuses some, or until ctx ends.
func (u *insistent) insist(ctx context.Context, t *testing.T) {
	var wg sync.WaitGroup
	done := func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.over || ctx.Err() != nil
	}
	for n := 0; !done(); n++ {
		id := strconv.Itoa(n)
		wg.Go(func() { u.send(t, 0, id) })
		time.Sleep(3 * time.Millisecond)
		u.send(t, 1, id)
	}
	wg.Wait()
}

// judge compares what was admitted with what the user's item counts.
func (u *insistent) judge(t *testing.T) (admitted int) {
	t.Helper()
	counted := 0
	for id, ok := range u.admitted {
		if !ok {
			continue
		}
		admitted++
		d, err := u.instances[0].Decide(t.Context(), Status, u.parts(id)[0].Request)
		testkit.OK(t, err)
		if d.Reason == Duplicate {
			counted++
		}
	}
	if admitted > 20 || counted < admitted {
		t.Errorf("%s: %d actions were admitted, and %d of them are counted, want at most 20 of 20", u.name, admitted, counted)
	}
	return admitted
}

// Ten users are in one room and send each action twice, 3 ms apart, to two instances. The room
// is full of others: it refuses some attempts, and a moment later it has a place again. Nobody gets more
// than the limit, and each user's item counts what was admitted.
func TestUsersWhoSendTwiceInABusyRoomGetTheLimit(t *testing.T) {
	store := dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	ctx, stop := context.WithTimeout(t.Context(), testkit.Bound(2*time.Second, 6*time.Second))
	defer stop()
	noon := time.Until(start.Truncate(24 * time.Hour).Add(12 * time.Hour)) // so the day does not end
	instance := func() *Limiter {
		return &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: func() time.Time { return time.Now().Add(noon) }}
	}
	var users []*insistent
	var wg sync.WaitGroup
	wg.Go(func() { crowd(ctx, t, instance, "a") })
	wg.Go(func() { crowd(ctx, t, instance, "b") })
	for n := range 10 {
		u := &insistent{name: fmt.Sprint("u", n), instances: [2]*Limiter{instance(), instance()}, admitted: map[string]bool{}}
		users = append(users, u)
		wg.Go(func() { u.insist(ctx, t) })
	}
	wg.Wait()
	admitted, sent := 0, 0
	for _, u := range users {
		admitted, sent = admitted+u.judge(t), sent+len(u.admitted)
	}
	t.Logf("%d of %d actions were admitted", admitted, sent)
	if admitted == 0 || admitted == sent {
		t.Errorf("%d of %d actions were admitted, want some", admitted, sent)
	}
}
