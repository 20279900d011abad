package outage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// seed makes the traffic of all tests. The pauses between attempts are random
// too, and have no seed.
const seed = 1

// A world is a table, some instances and their users, in virtual time. It
// exists within one bubble of testing/synctest.
type world struct {
	t         testing.TB
	name      string
	users     []user
	instances []*instance

	mu    sync.Mutex
	table account // what the table counted
}

// A user acts at random times, on every instance. If the limits have names, a user acts in
// two activities of a group. In the second one an action takes two units of each limit.
type user struct {
	name   string
	policy policy.Policy
	dear   policy.Policy // of the second activity
}

// newUser returns a user with a policy. A reservoir has no cost.
func newUser(name, text string) user {
	u := user{name: name, policy: policy.Must(text), dear: policy.Must(text)}
	var limits []string
	for _, r := range u.policy.Rates() {
		limits = append(limits, fmt.Sprintf("%s: %s cost 2", r.Name, u.policy.Part(r.Name)))
	}
	if p, err := policy.Parse(strings.Join(limits, ", ")); err == nil && u.policy.Named() {
		u.dear = p
	}
	return u
}

// units is the key of how many units of each limit an action takes, in the context of its
// decision.
type units struct{}

// An instance is a guard's limiter as production configures it.
type instance struct {
	*ratelimit.Limiter
	network *network
	random  *rand.Rand
	callers int // decisions that it makes at the same time; on Lambda 1
	asked   int

	mu      sync.Mutex
	records []record
	alone   account // what it admitted without the table
	all     account // what it admitted
	others  account // of that, what it did not admit alone
	leased  int     // decisions from a lease
}

// newWorld makes a world with n instances and two users of each policy.
func newWorld(t testing.TB, name string, n, callers int, policies ...string) *world {
	t.Helper()
	t.Cleanup(func() { time.Sleep(timeout) }) // probes go on without their decisions
	w := &world{t: t, name: name, table: account{}}
	for i := range 2 {
		for _, text := range policies {
			w.users = append(w.users, newUser(fmt.Sprint("user ", i, " of ", text), text))
		}
	}
	table := new(memstore.Store)
	for i := range n {
		net := &network{table: table, counted: func(ctx context.Context, write ratelimit.Write) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.table.add(ctx.Value(units{}).(int64), write.Key.UserID, time.UnixMilli(write.Now), write.Update.ReadyAt)
		}}
		net.use(healthy)
		w.instances = append(w.instances, &instance{
			Limiter: &ratelimit.Limiter{Store: net, Memory: ratelimit.NewMemory(ratelimit.DefaultMemory), Timeout: timeout},
			network: net, random: rand.New(rand.NewPCG(seed, uint64(i))), callers: callers, alone: account{}, all: account{}, others: account{},
		})
	}
	return w
}

// use sends all requests that come from now on by way.
func (w *world) use(way way) {
	for _, in := range w.instances {
		in.network.use(way)
	}
}

// run lets the traffic of these users flow for some time. Each caller of an
// instance makes about ten decisions in a second.
func (w *world) run(d time.Duration, users []user) {
	end := time.Now().Add(d)
	var all sync.WaitGroup
	for _, in := range w.instances {
		for range in.callers {
			all.Go(func() {
				for {
					user, pause := in.draw(users)
					if time.Sleep(pause); !time.Now().Before(end) {
						return
					}
					in.decide(w.t, user)
				}
			})
		}
	}
	all.Wait()
}

// draw returns the next user and the pause before.
func (in *instance) draw(users []user) (user, time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return users[in.random.IntN(len(users))], time.Duration(in.random.Int64N(int64(200 * time.Millisecond)))
}

// decide makes one decision for u and records it.
func (in *instance) decide(t testing.TB, u user) {
	t.Helper()
	in.mu.Lock()
	in.asked++
	r := ratelimit.Request{
		UserID: u.name, Activity: "act", Policy: u.policy, Count: 1, ID: fmt.Sprintf("%p %d", in, in.asked), Fresh: true, Fallback: true,
	}
	if u.policy.Named() { // two activities of a group
		r.Group, r.Activity = "act", fmt.Sprint("activity", in.asked%2)
		r.Policy = []policy.Policy{u.policy, u.dear}[in.asked%2]
	}
	n := max(1, r.Policy.Rates()[0].Cost)
	in.mu.Unlock()
	start := time.Now()
	d, err := in.Check(context.WithValue(t.Context(), units{}, n), r)
	if err != nil {
		t.Errorf("Check: %v", err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.records = append(in.records, record{u.name, start, time.Now(), d.Requests, d.Outage != nil})
	if d.Granted == 0 && d.ReadyAt == 0 {
		return
	}
	in.all.add(n, u.name, start, d.ReadyAt)
	if d.Outage != nil {
		in.alone.add(n, u.name, start, d.ReadyAt)
	} else {
		in.others.add(n, u.name, start, d.ReadyAt)
	}
	if d.Leased {
		in.leased++
	}
}

// A peakOf is the most actions of one user that counted at once.
type peakOf struct {
	policy string // the limit's text
	got    int64
	most   int64 // that the limit allows
}

func (p peakOf) String() string { return fmt.Sprintf("%d of %d", p.got, p.most) }

// peaks returns, for each limit of each policy, the peak of the user who has the
// highest one. Each limit is taken this many times.
func (w *world) peaks(of account, times int64) map[string]peakOf {
	highest := map[string]peakOf{}
	for _, u := range w.users {
		for _, r := range u.policy.Rates() {
			r.Limit, r.Burst = times*r.Limit, times*r.Burst
			key := strings.TrimSpace(u.policy.String() + " " + r.Name)
			raise(highest, map[string]peakOf{key: {u.policy.String(), peak(w.t, r, of[u.name]), most(r)}})
		}
	}
	return highest
}

// keepPromise fails the test if an instance admitted more alone than a limit
// allows, or if the table counted more.
func (w *world) keepPromise() {
	w.keep("the table's actions", w.table)
	for i, in := range w.instances {
		w.keep(fmt.Sprintf("what instance %d admitted alone", i), in.alone)
	}
}

// keepInAll fails the test if an instance admitted more than a limit allows,
// alone and by the table together. An instance goes on from what it saw, so that
// holds until the table answers again. Of concurrent answers of the table an
// instance keeps one, so it can miss an action of another caller.
func (w *world) keepInAll() {
	for i, in := range w.instances {
		if in.callers == 1 {
			w.keep(fmt.Sprintf("what instance %d admitted in all", i), in.all)
		}
	}
}

func (w *world) keep(what string, of account) {
	for _, p := range w.peaks(of, 1) {
		if p.got > p.most {
			w.t.Errorf("%s: %s of %s: %d at once, want at most %d", w.name, what, p.policy, p.got, p.most)
		}
	}
}

// eachAlone returns the peaks of what each instance admitted alone.
func (w *world) eachAlone() map[string]peakOf {
	return w.highest(func(in *instance) map[string]peakOf { return w.peaks(in.alone, 1) })
}

// highest returns the peaks of the instance that has the highest ones.
func (w *world) highest(of func(*instance) map[string]peakOf) map[string]peakOf {
	highest := map[string]peakOf{}
	for _, in := range w.instances {
		raise(highest, of(in))
	}
	return highest
}

// raise replaces each peak if others has a higher one.
func raise(peaks, others map[string]peakOf) {
	for limit, p := range others {
		if old, ok := peaks[limit]; !ok || p.got > old.got {
			peaks[limit] = p
		}
	}
}
