package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A party is some users in a room. They send actions to all instances at once, and send
// some of them again.
type party struct {
	name     string
	of, room policy.Policy
	visitors []string           // each sends one action, with its name as the id
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

// act sends an action, and notes whether it is admitted.
func (p *party) act(ctx context.Context, t *testing.T, l *ratelimit.Limiter, random *rand.Rand) func() {
	t.Helper()
	user, id := fmt.Sprint("u", random.IntN(partyUsers)), fmt.Sprint("r", random.IntN(partyIDs))
	return p.send(ctx, t, l, user, id)
}

// send sends an action of a user, and notes whether it is admitted.
func (p *party) send(ctx context.Context, t *testing.T, l *ratelimit.Limiter, user, id string) func() {
	t.Helper()
	d, err := l.DecideAll(ctx, ratelimit.Check, p.parts(user, id), false)
	return func() {
		switch known := d.Reason == ratelimit.OK || d.Reason == ratelimit.Duplicate; {
		case err == nil && known != d.Allowed, err == nil && !known && d.Reason != ratelimit.Limited:
			t.Errorf("%s: %s of %s is told %+v", p.name, id, user, d)
		case err == nil && known:
			p.admitted[[2]string{user, id}] = true
		}
	}
}

// sent returns the users and ids of all actions that may have been sent.
func (p *party) sent() (all [][2]string) {
	for u := range partyUsers {
		for n := range partyIDs {
			all = append(all, [2]string{fmt.Sprint("u", u), fmt.Sprint("r", n)})
		}
	}
	for _, v := range p.visitors {
		all = append(all, [2]string{v, v})
	}
	return all
}

// judge compares what was admitted with the items, once everything has arrived. No item counts
// more than its limit, each counts what was admitted, and no id counts twice.
func (p *party) judge(t *testing.T, l *ratelimit.Limiter) {
	t.Helper()
	look := func(part ratelimit.Part, id string) (used int64, known bool) {
		part.ID = id
		d, err := l.Decide(calm(t), ratelimit.Status, part.Request)
		if err != nil || d.Used > d.Limit {
			t.Errorf("%s: the item of %q counts %d of %d, error %v", p.name, part.UserID, d.Used, d.Limit, err)
		}
		return d.Used, d.Reason == ratelimit.Duplicate
	}
	counted := map[string]int64{} // by the item's user
	for _, a := range p.sent() {
		for _, part := range p.parts(a[0], a[1]) {
			_, known := look(part, a[1])
			if known {
				counted[part.UserID]++
			}
			if p.admitted[a] && !known {
				t.Errorf("%s: %s of %s is admitted, and %q does not count it", p.name, a[1], a[0], part.UserID)
			}
		}
	}
	for _, a := range p.sent() {
		for _, part := range p.parts(a[0], "") {
			if used, _ := look(part, "other"); used != counted[part.UserID] {
				t.Errorf("%s: %q counts %d, and knows %d ids", p.name, part.UserID, used, counted[part.UserID])
			}
		}
	}
}

func TestARoomOfSeveralUsersKeepsEachLimit(t *testing.T) {
	prove.Explain(t, "histories")
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	rig := newRig(t, proxy, table)
	kinds := []string{"", "log ", "sliding ", "bucket "}
	admitted, refused := 0, 0
	for n := range prove.Bound(16, 2000) {
		p := &party{
			name: fmt.Sprint("party", n, "-"), admitted: map[[2]string]bool{},
			of: policy.Must(kinds[n%4] + "4/1h"), room: policy.Must(kinds[n/4%4] + "6/1h"),
		}
		r := rush{rig: rig, seed: uint64(n), times: 6, lossy: true}
		r.act = func(ctx context.Context, l *ratelimit.Limiter, _ string, random *rand.Rand) func() {
			return p.act(ctx, t, l, random)
		}
		r.run(t)
		p.judge(t, newLimiter(rig.stores[0], standsStill))
		admitted += len(p.admitted)
		refused += partyUsers*partyIDs - len(p.admitted)
	}
	if admitted == 0 || refused == 0 {
		t.Errorf("%d are admitted and %d are not, want some", admitted, refused)
	}
}
