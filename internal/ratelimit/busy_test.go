package ratelimit_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
