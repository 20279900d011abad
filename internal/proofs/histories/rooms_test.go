package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A party is some users in a room. They send actions to all instances at once, and send
// some of them again. The clock stands still.
type party struct {
	*rig

	name     string
	of, room policy.Policy

	mu       sync.Mutex
	late     []*dynamotest.Attempt
	admitted map[[2]string]bool // user and id
}

const partyUsers, partyIDs = 3, 5

// parts returns the parts of an action.
func (p *party) parts(user, id string) []ratelimit.Part {
	r := ratelimit.Request{UserID: p.name + user, Activity: "act", Policy: p.of, Count: 1, ID: id}
	inRoom := r
	inRoom.UserID, inRoom.For, inRoom.Policy = " room "+p.name, r.UserID, p.room
	return []ratelimit.Part{{Request: r}, {Request: inRoom, Subject: "room"}}
}

func (p *party) limiter(i int) *ratelimit.Limiter {
	return &ratelimit.Limiter{
		Store: p.stores[i], Memory: ratelimit.NewMemory(1 << 20), Now: func() time.Time { return time.UnixMilli(start) },
		NewBudget: func() ratelimit.Budget { return new(dynamotest.Budget) },
	}
}

// act sends actions to instance i, and notes which ones are admitted.
func (p *party) act(ctx context.Context, t *testing.T, i int, random *rand.Rand) {
	l := p.limiter(i)
	for range 6 {
		user, id := fmt.Sprint("u", random.IntN(partyUsers)), fmt.Sprint("r", random.IntN(partyIDs))
		plan := &dynamotest.Plan{Faults: faults(random), Patience: time.Millisecond, Attempts: 1 + random.IntN(4)}
		d, err := l.DecideAll(plan.In(ctx), ratelimit.Check, p.parts(user, id), false)
		p.mu.Lock()
		switch known := d.Reason == ratelimit.OK || d.Reason == ratelimit.Duplicate; {
		case err == nil && known != d.Allowed, err == nil && !known && d.Reason != ratelimit.Limited:
			t.Errorf("%s: %s of %s is told %+v", p.name, id, user, d)
		case err == nil && known:
			p.admitted[[2]string{user, id}] = true
		}
		for _, a := range plan.Sent() {
			if a.Fault == dynamotest.Late {
				p.late = append(p.late, a)
			}
		}
		p.mu.Unlock()
		if random.IntN(8) == 0 {
			l = p.limiter(i) // the instance has died
		}
	}
}

// judge compares what was admitted with the items. No item counts more than its limit, each
// counts what was admitted, and no id counts twice.
func (p *party) judge(ctx context.Context, t *testing.T) {
	ctx = (&dynamotest.Plan{Attempts: 1, Patience: time.Minute}).In(ctx)
	l := p.limiter(0)
	look := func(part ratelimit.Part, id string) ratelimit.Decision {
		part.ID = id
		d, err := l.Decide(ctx, ratelimit.Status, part.Request)
		if err != nil {
			t.Error(err)
		}
		return d
	}
	inRoom := int64(0)
	for u := range partyUsers {
		user, known := fmt.Sprint("u", u), int64(0)
		var parts []ratelimit.Part
		for n := range partyIDs {
			id := fmt.Sprint("r", n)
			parts = p.parts(user, id)
			ofUser, ofRoom := look(parts[0], id).Reason == ratelimit.Duplicate, look(parts[1], id).Reason == ratelimit.Duplicate
			if p.admitted[[2]string{user, id}] && (!ofUser || !ofRoom) {
				t.Errorf("%s: %s of %s is admitted; the user counts it: %v, the room: %v", p.name, id, user, ofUser, ofRoom)
			}
			if ofUser {
				known++
			}
			if ofRoom {
				inRoom++
			}
		}
		if d := look(parts[0], "other"); d.Used != known || d.Used > d.Limit {
			t.Errorf("%s: %s counts %d of %d, and knows %d ids", p.name, user, d.Used, d.Limit, known)
		}
	}
	if d := look(p.parts("u0", "")[1], "other"); d.Used != inRoom || d.Used > d.Limit {
		t.Errorf("%s: the room counts %d of %d, and knows %d ids", p.name, d.Used, d.Limit, inRoom)
	}
}

func TestARoomOfSeveralUsersKeepsEachLimit(t *testing.T) {
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	r := newRig(t, proxy, table)
	kinds := []string{"", "log ", "sliding ", "bucket "}
	admitted, refused := 0, 0
	for n := range prove.Bound(16, 2000) {
		random := rand.New(rand.NewPCG(uint64(n), 8))
		p := &party{
			rig: r, name: fmt.Sprint("party", n, "-"), admitted: map[[2]string]bool{},
			of: policy.Must(kinds[n%4] + "4/1h"), room: policy.Must(kinds[n/4%4] + "6/1h"),
		}
		var wg sync.WaitGroup
		for i := range instances {
			own := rand.New(rand.NewPCG(random.Uint64(), 9))
			wg.Go(func() { p.act(t.Context(), t, i, own) })
		}
		wg.Wait()
		for _, a := range p.late {
			if err := a.Deliver(); err != nil {
				t.Error(err)
			}
		}
		p.judge(t.Context(), t)
		admitted += len(p.admitted)
		refused += partyUsers*partyIDs - len(p.admitted)
	}
	if admitted == 0 || refused == 0 {
		t.Errorf("%d are admitted and %d are not, want some", admitted, refused)
	}
}
