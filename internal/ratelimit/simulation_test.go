package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A simulation has three instances whose clocks differ by up to 2 s. They share a
// store, and between them and the store requests and answers get lost, arrive
// late, or are throttled. All randomness comes from a seed.
type simulation struct {
	t         *testing.T
	random    *rand.Rand
	policy    policy.Policy
	now       time.Duration // after start, by a clock that is right
	store     *memstore.Store
	instances []*instance
	late      []arrival
	ledger    ledger
	ids       int
	nested    bool // a request is being sent between two attempts of another
	asked     []*asked
	events    []string
}

// An arrival is a request that reaches the store later.
type arrival struct {
	at      time.Duration
	perform func()
}

// An instance is a limiter and the network between it and the store.
type instance struct {
	*simulation
	limiter *Limiter
	ahead   time.Duration
	id      string // of the request in hand
	receipt int64  // of a release
}

// asked is what a caller remembers about a check.
type asked struct {
	Request
	first  time.Duration // when it was sent first
	window int64         // of the item
	before int64         // an older receipt
	dead   bool          // not to be repeated or released any more
}

func simulate(t *testing.T, text string, seed uint64, steps int) *simulation {
	t.Helper()
	s := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), policy: policy.Must(text), store: new(memstore.Store)}
	s.ledger = ledger{simulation: s, back: map[string]bool{}}
	for i := range 3 {
		in := &instance{simulation: s, ahead: []time.Duration{0, s.upTo(2 * time.Second), 2 * time.Second}[i]}
		in.limiter = &Limiter{
			Store: in, Memory: NewMemory(mib), Now: func() time.Time { return start.Add(s.now + in.ahead) },
			Attempts: func() Budget { a := attempts(2 + s.random.IntN(4)); return &a },
		}
		s.instances = append(s.instances, in)
	}
	for range steps {
		s.advance(s.upTo(time.Second))
		s.step(s.instances[s.random.IntN(3)])
	}
	s.advance(5 * time.Second)
	return s
}

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)/1e6+1)) * time.Millisecond
}

// advance lets time pass. Late requests arrive in the meantime.
func (s *simulation) advance(d time.Duration) {
	s.now += d
	arriving := s.late
	s.late = nil
	for _, a := range arriving {
		if a.at <= s.now {
			a.perform()
		} else {
			s.late = append(s.late, a)
		}
	}
}

// step sends one request of a random kind.
func (s *simulation) step(in *instance) {
	queue := s.policy.Queues()
	var old *asked
	if len(s.asked) > 0 {
		old = s.asked[max(0, len(s.asked)-1-s.random.IntN(8))]
	}
	switch what := s.random.IntN(20); {
	case what < 4 && old != nil && !old.dead && !old.Fresh && s.now-old.first < 12*time.Second:
		in.check(old)
	case what < 8 && !queue && old != nil && !old.dead && old.At != 0:
		in.release(old)
	case what == 8 && !queue && s.random.IntN(4) == 0:
		in.reset()
	case what == 9:
		in.status()
	default:
		in.checkNew()
	}
}

func (in *instance) checkNew() {
	in.ids++
	r := request(in.policy, fmt.Sprint("r", in.ids), 1)
	if !in.policy.Queues() {
		r.Count = 1 + in.random.Int64N(min(3, in.policy.Most()))
		r.Partial = in.random.IntN(4) == 0
	}
	r.Alone = in.random.IntN(3) == 0
	r.Fresh = r.Partial || r.Alone // never repeated
	a := &asked{Request: r, first: in.now}
	if !in.nested {
		in.asked = append(in.asked, a)
	}
	in.check(a)
}

// on notes the request in hand, until the returned func is called.
func (in *instance) on(id string, receipt int64) func() {
	was, before := in.id, in.receipt
	in.id, in.receipt = id, receipt
	return func() { in.id, in.receipt = was, before }
}

func (in *instance) check(a *asked) {
	defer in.on(a.ID, 0)()
	at := in.limiter.Clock()
	a.window, _ = in.policy.Item(at.UnixMilli())
	r := a.Request
	r.At = 0
	d, err := in.limiter.Check(in.t.Context(), r)
	in.event("check %s of %d (partial %v) by %v ahead: %s, granted %d, receipt %d, %v", a.ID, a.Count, a.Partial, in.ahead, inWords(d), d.Granted, d.At, err)
	if err == nil {
		in.ledger.told(in, a, d, at.UnixMilli())
	}
	if d.At != 0 && d.Reason == OK {
		a.before, a.At, a.Count = a.At, d.At, d.Granted
	}
}

func (in *instance) release(a *asked) {
	r := a.Request
	if a.before != 0 && in.random.IntN(2) == 0 {
		r.At = a.before
	}
	defer in.on(a.ID, r.At)()
	d, err := in.limiter.Release(in.t.Context(), r)
	in.event("release %s of %d at %d by %v ahead: %s, %v", a.ID, a.Count, r.At, in.ahead, inWords(d), err)
	if err == nil && r.At == a.At {
		in.ledger.released(in, a)
	}
	a.dead = a.Fresh || in.random.IntN(2) == 0 // or it is counted again
}

func (in *instance) reset() {
	_, err := in.limiter.Reset(in.t.Context(), request(in.policy, "reset", 1))
	in.event("reset by %v ahead: %v", in.ahead, err)
	for _, a := range in.asked {
		a.dead = true // its trace may be gone
	}
	if err == nil {
		in.ledger.alone = nil
	}
}

func (in *instance) status() {
	if d, err := in.limiter.Status(in.t.Context(), request(in.policy, "status", 1)); err == nil && d.Outage == nil {
		if d.Remaining < 0 || d.Used < 0 || d.Wait < 0 || d.At != 0 {
			in.fail("status: %+v, want figures in range and no receipt", d)
		}
	}
}

// send carries a request to the store, or not.
func (in *instance) send(perform func()) error {
	in.advance(in.upTo(300 * time.Millisecond))
	if !in.nested && in.random.IntN(8) == 0 {
		in.nested = true
		in.instances[in.random.IntN(3)].checkNew()
		in.nested = false
	}
	switch what := in.random.IntN(20); {
	case what < 13:
		perform()
		return nil
	case what < 15:
		perform()
		return errors.New("the answer is lost")
	case what < 17:
		return errors.New("the request is lost")
	case what < 18:
		return &StoreError{Failure: NotApplied, What: "throttled"}
	}
	in.late = append(in.late, arrival{in.now + in.upTo(4*time.Second), perform})
	return errors.New("the request is late")
}

// Update implements [Store].
func (in *instance) Update(ctx context.Context, w Write) (item Item, done bool, err error) {
	id, receipt := in.id, in.receipt
	err = in.send(func() {
		before, _ := in.store.Read(ctx, w.Key)
		if item, done, _ = in.store.Update(ctx, w); done {
			in.ledger.applied(id, receipt, w, before.State, item.State)
		}
	})
	if err != nil {
		return Item{}, false, err
	}
	return item, done, nil
}

// Read implements [Store].
func (in *instance) Read(ctx context.Context, k Key) (item Item, err error) {
	err = in.send(func() { item, _ = in.store.Read(ctx, k) })
	return item, err
}

// Delete implements [Store].
func (in *instance) Delete(ctx context.Context, k Key) error {
	return in.send(func() {
		_ = in.store.Delete(ctx, k)
		in.ledger.deleted(k.Window)
	})
}

func (s *simulation) event(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf("%v ", s.now)+fmt.Sprintf(format, args...))
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), strings.Join(s.events[max(0, len(s.events)-30):], "\n"))
}
