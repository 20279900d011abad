package ratelimit_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// faulty is a store whose requests fail as a test orders. It uses up the faults
// from the first to the last, and then repeats the last one.
type faulty struct {
	Store
	user   string // whose requests fail, a user's or a room's; empty: everybody's
	mu     sync.Mutex
	faults []fault
	sent   int
}

// A fault is what happens to one request. Perform carries the request out.
type fault func(ctx context.Context, perform func() error) error

func pass(_ context.Context, perform func() error) error { return perform() }

// lose carries the request out and loses the answer.
func lose(_ context.Context, perform func() error) error {
	_ = perform()
	return errors.New("connection reset")
}

// hang gives no answer and carries nothing out.
func hang(ctx context.Context, _ func() error) error {
	<-ctx.Done()
	return ctx.Err()
}

// hangAfter carries the request out and gives no answer.
func hangAfter(ctx context.Context, perform func() error) error {
	_ = perform()
	return hang(ctx, nil)
}

// refuse carries nothing out, but the limiter cannot know that.
func refuse(context.Context, func() error) error { return errors.New("connection refused") }

func throttle(context.Context, func() error) error {
	return &StoreError{Failure: NotApplied, What: "throttled", Err: errors.New("slow down")}
}

func deny(context.Context, func() error) error {
	return &StoreError{Failure: Misconfigured, What: "denied", Err: errors.New("no")}
}

func reject(context.Context, func() error) error {
	return &StoreError{Failure: Invalid, What: "rejected", Err: errors.New("too large")}
}

// held carries the request out and returns its answer d later.
func held(d time.Duration) fault {
	return func(_ context.Context, perform func() error) error {
		err := perform()
		time.Sleep(d)
		return err
	}
}

// settle waits until a probe has ended that goes on without its decision.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// repeat returns a fault n times and then pass.
func repeat(n int, f fault) []fault {
	faults := make([]fault, n, n+1)
	for i := range faults {
		faults[i] = f
	}
	return append(faults, pass)
}

// spares reports whether requests for k never fail.
func (f *faulty) spares(k Key) bool { return f.user != "" && f.user != k.UserID }

func (f *faulty) next() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	now := f.faults[0]
	if len(f.faults) > 1 {
		f.faults = f.faults[1:]
	}
	return now
}

// count returns how many requests were sent. A probe can send some beside its
// test.
func (f *faulty) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// set replaces the faults to come.
func (f *faulty) set(faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// A request can be performed after its caller has left, so what it brings has a lock.
func (f *faulty) Update(ctx context.Context, w Write) (Item, bool, error) {
	if f.spares(w.Key) {
		return f.Store.Update(ctx, w)
	}
	var mu sync.Mutex
	var item Item
	var done bool
	err := f.next()(ctx, func() error {
		is, performed, err := f.Store.Update(context.WithoutCancel(ctx), w)
		mu.Lock()
		defer mu.Unlock()
		item, done = is, performed
		return err
	})
	if err != nil {
		return Item{}, false, err
	}
	mu.Lock()
	defer mu.Unlock()
	return item, done, nil
}

func (f *faulty) Read(ctx context.Context, k Key) (item Item, err error) {
	if f.spares(k) {
		return f.Store.Read(ctx, k)
	}
	err = f.next()(ctx, func() (err error) {
		item, err = f.Store.Read(ctx, k)
		return err
	})
	return item, err
}

func (f *faulty) Delete(ctx context.Context, k Key) error {
	if f.spares(k) {
		return f.Store.Delete(ctx, k)
	}
	return f.next()(ctx, func() error { return f.Store.Delete(ctx, k) })
}

// newFaulty returns a limiter with a memory on a store with these faults.
func newFaulty(faults ...fault) (*Limiter, *faulty) {
	f := &faulty{Store: new(memstore.Store), faults: faults}
	return &Limiter{Store: f, Timeout: time.Second, Memory: NewMemory(mib)}, f
}

// onClock is newFaulty with a clock that the test sets.
func onClock(faults ...fault) (*Limiter, *faulty, *clock) {
	l, f := newFaulty(faults...)
	c := newClock()
	l.Now = c.now
	return l, f, c
}

// opened is newFaulty after a check with this fault, which opens a circuit.
func opened(t *testing.T, f fault) (*Limiter, *faulty, *ids) {
	t.Helper()
	l, store := newFaulty(f)
	r := new(ids)
	mustCheck(t, l, r.next(1))
	return l, store, r
}

// attempts is a budget of so many attempts without pauses.
type attempts int

func (a *attempts) Next(context.Context, bool) bool {
	*a--
	return *a >= 0
}

// noPauses returns budgets of n attempts without pauses.
func noPauses(n int) func() Budget {
	return func() Budget { left := attempts(n); return &left }
}

// verbs returns everything that a limiter can be asked of any policy: check, status,
// release and reset.
func verbs(l *Limiter) (all []func(context.Context, Request) (Decision, error)) {
	for _, op := range []Op{Check, Status, Release, Reset} {
		all = append(all, func(ctx context.Context, r Request) (Decision, error) { return l.Decide(ctx, op, r) })
	}
	return all
}

// hooked is a store that calls functions before and after each update. If before returns an
// error, the update is not performed. After is told whether it was.
type hooked struct {
	Store
	before func(Write) error
	after  func(w Write, done bool)
}

func (s *hooked) Update(ctx context.Context, w Write) (Item, bool, error) {
	if s.before != nil {
		if err := s.before(w); err != nil {
			return Item{}, false, err
		}
	}
	item, done, err := s.Store.Update(ctx, w)
	if s.after != nil {
		s.after(w, done)
	}
	return item, done, err
}

func beforeEach(s Store, f func(Write) error) Store       { return &hooked{Store: s, before: f} }
func afterEach(s Store, f func(w Write, done bool)) Store { return &hooked{Store: s, after: f} }

// once returns a hook that calls f the first time that an update has what is asked for.
func once(is func(Write) bool, f func()) func(Write) error {
	done := false
	return func(w Write) error {
		if !done && is(w) {
			done = true
			f()
		}
		return nil
	}
}

// always is more often than a test sends updates.
const always = math.MaxInt

// fails returns a hook that fails the first n updates that have what is asked for.
func fails(is func(Write) bool, n int, err error) func(Write) error {
	return func(w Write) error {
		if n == 0 || !is(w) {
			return nil
		}
		n--
		return err
	}
}

// mortal returns a store that stops after some updates, as if the process had died.
func mortal(s Store, left int) Store {
	return beforeEach(s, func(Write) error {
		if left--; left < 0 {
			return errors.New("killed")
		}
		return nil
	})
}

func anyWrite(Write) bool    { return true }
func givesBack(w Write) bool { return w.GivesBack }
func marks(w Write) bool     { return w.RelyOn.Set != "" }
func inRoom(w Write) bool    { return w.Key.UserID[0] == ' ' }
func ofUser(w Write) bool    { return !inRoom(w) }

// throttling returns a store that throttles the items of one user.
func throttling(s Store, user string) Store {
	return beforeEach(s, fails(func(w Write) bool { return w.Key.UserID == user }, always, errThrottled))
}

var errThrottled = &StoreError{Failure: NotApplied, What: "throttled"}
