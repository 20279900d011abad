package ratelimit_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// three is the policy of most tests here, and fourAMinute of some.
var (
	three       = policy.Must("3/1m")
	fourAMinute = policy.Must("4/1m")
)

// start is the start of a window of a minute, and of a generation of ids.
var start = time.UnixMilli(1_700_345_640_000)

// mib is enough memory for any test.
const mib = 1 << 20

// A clock is a limiter's clock that a test sets. A probe can read it after its
// decision.
type clock struct{ unix atomic.Int64 } // ns

// newClock returns a clock that shows start.
func newClock() *clock { return clockAt(start) }

func clockAt(t time.Time) *clock {
	c := new(clock)
	c.unix.Store(t.UnixNano())
	return c
}

func (c *clock) at(d time.Duration)  { c.unix.Store(start.Add(d).UnixNano()) }
func (c *clock) add(d time.Duration) { c.unix.Add(int64(d)) }
func (c *clock) now() time.Time      { return time.Unix(0, c.unix.Load()) }

// instance returns a limiter that remembers, and its clock. A busy machine has 10 s to answer.
func instance(store Store) (*Limiter, *clock) {
	c := newClock()
	return &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib), Timeout: 10 * time.Second}, c
}

// atOnce calls f n times at once, and waits for all of them.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// ids makes requests that differ in their id.
type ids struct{ last int }

func (i *ids) next(n int64) Request {
	i.last++
	return request(three, strconv.Itoa(i.last), n)
}

// request returns a request of a caller's own id. In an outage it is decided from
// memory.
func request(p policy.Policy, id string, n int64) Request {
	return Request{UserID: "u", Activity: "act", Policy: p, Count: n, ID: id, Fallback: true}
}

// stores opens each kind of store, empty.
var stores = map[string]func(testing.TB) Store{
	"memory": func(testing.TB) Store { return new(memstore.Store) },
	"dynamodb": func(t testing.TB) Store {
		t.Helper()
		return dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	},
}

// repeats returns a tenth of n, or n if long bounds apply.
func repeats(n int) int { return testkit.Bound(max(1, n/10), n) }

// onEachStore runs a test once for each kind of store.
func onEachStore(t *testing.T, test func(*testing.T, Store)) {
	t.Helper()
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) { test(t, open(t)) })
	}
}

func mustCheck(t testing.TB, l *Limiter, r Request) Decision {
	t.Helper()
	d, err := l.Check(t.Context(), r)
	if err != nil {
		t.Fatalf("Check(%s of %d): %v", r.ID, r.Count, err)
	}
	return d
}

// A subject is a policy that tests of all policies use.
type subject struct {
	text string
	cold int // the most requests that a cold process needs for a decision
}

// policy returns the policy. If it has a max, the caller gives a number.
func (s subject) policy() policy.Policy { return numbered(s.text, 30) }

// subjects returns each kind's main example and the special cases of some. A new
// kind takes part with at most two requests for a cold decision.
func subjects() []subject {
	all := []subject{
		{"1000/1h", 1},
		{"20/1h max 90", 1},
		{"bucket 1/5s keep 1h", 1},
		{"sliding 1000/1h", 2},
		{"minute: 10/1m, day: 200/1d", 2},
	}
	for _, k := range policy.Kinds() {
		cold := 2
		if k.Name == "fixed" || k.Name == "sliding" {
			cold = 1
		}
		all = append(all, subject{k.Examples[0], cold})
	}
	return all
}

// onEachSubject runs a test once for each subject.
func onEachSubject(t *testing.T, test func(*testing.T, subject)) {
	t.Helper()
	for _, s := range subjects() {
		t.Run(s.text, func(t *testing.T) { test(t, s) })
	}
}

// remaining returns how many actions an empty item has room for.
func remaining(p policy.Policy) int64 { return p.Read(start.UnixMilli(), 0, nil).Remaining }

// longest returns the longest window of p.
func longest(p policy.Policy) (d time.Duration) {
	for _, r := range p.Rates() {
		d = max(d, r.Window)
	}
	return d
}
