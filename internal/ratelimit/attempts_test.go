package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// faulty is a store whose requests go wrong as told, one after the other; the
// last fault stays.
type faulty struct {
	Store
	mu     sync.Mutex
	faults []fault
	sent   int
}

type fault func(ctx context.Context, perform func() error) error

func pass(_ context.Context, perform func() error) error { return perform() }

func lose(_ context.Context, perform func() error) error { // performed, and the answer lost
	_ = perform()
	return errors.New("connection reset")
}

func hang(ctx context.Context, _ func() error) error {
	<-ctx.Done()
	return ctx.Err()
}

func hangAfter(ctx context.Context, perform func() error) error {
	_ = perform()
	return hang(ctx, nil)
}

func refuse(context.Context, func() error) error { return errors.New("connection refused") }

func throttle(context.Context, func() error) error {
	return &StoreError{Failure: Throttled, What: "throttled", Err: errors.New("slow down")}
}

func deny(context.Context, func() error) error {
	return &StoreError{Failure: Rejected, What: "denied", Err: errors.New("no")}
}

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

func (f *faulty) Update(ctx context.Context, w Write) (item Item, done bool, err error) {
	err = f.next()(ctx, func() (err error) {
		item, done, err = f.Store.Update(ctx, w)
		return err
	})
	if err != nil {
		return Item{}, false, err
	}
	return item, done, nil
}

func (f *faulty) Read(ctx context.Context, k Key) (item Item, err error) {
	err = f.next()(ctx, func() (err error) {
		item, err = f.Store.Read(ctx, k)
		return err
	})
	return item, err
}

func (f *faulty) Delete(ctx context.Context, k Key) error {
	return f.next()(ctx, func() error { return f.Store.Delete(ctx, k) })
}

func repeat(n int, f fault) []fault {
	faults := make([]fault, n, n+1)
	for i := range faults {
		faults[i] = f
	}
	return append(faults, pass)
}

// Whatever happens to answers, each decision counts once and is told so.
func TestLostAnswersAreCountedOnce(t *testing.T) {
	for name, f := range map[string]fault{"lost": lose, "hanging, performed": hangAfter, "hanging, not performed": hang, "refused": refuse, "throttled": throttle} {
		for n := range 6 {
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{Store: new(memstore.Store), faults: repeat(n, f)}
				l := &Limiter{Store: f, Timeout: time.Second}
				d, err := l.Check(t.Context(), new(ids).next(2))
				if err != nil || !d.Allowed || d.Reason != OK || d.Granted != 2 || d.Used != 2 || d.At == 0 || d.Requests != n+1 {
					t.Errorf("%s %d times: %+v, %v, want ok, 2 used, %d requests", name, n, d, err, n+1)
				}
			})
		}
	}
}

// A repeat of an earlier decision's request is a duplicate, unless an attempt
// of this decision may have been the one that counted it.
func TestDuplicateOrOK(t *testing.T) {
	for _, tt := range []struct {
		name string
		fault
		want Reason
	}{
		{"found at once", pass, Duplicate},
		{"found after a throttled attempt", throttle, Duplicate},
		{"found after a lost one", lose, OK},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: new(memstore.Store), faults: []fault{pass, tt.fault, pass}}
			l := &Limiter{Store: f, Timeout: time.Second}
			r := new(ids).next(1)
			for i, want := range []Reason{OK, tt.want} {
				d, err := l.Check(t.Context(), r)
				if err != nil || d.Reason != want || d.Used != 1 || (d.At != 0) != (want == OK) {
					t.Errorf("%s: check %d = %+v, %v, want %s, 1 used", tt.name, i+1, d, err, want)
				}
			}
		})
	}
}

func TestPartialGrantIsToldAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: new(memstore.Store), faults: []fault{pass, pass, lose, pass}}
		l := &Limiter{Store: f, Timeout: time.Second}
		var r ids
		if _, err := l.Check(t.Context(), r.next(1)); err != nil {
			t.Fatal(err)
		}
		some := r.next(3)
		some.Partial = true
		d, err := l.Check(t.Context(), some)
		if err != nil || d.Reason != OK || d.Granted != 2 || d.Used != 3 {
			t.Errorf("partial check = %+v, %v, want 2 of 3 granted", d, err)
		}
	})
}

func TestReleaseAndResetAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
		l := &Limiter{Store: f, Timeout: time.Second}
		r := new(ids).next(2)
		d, err := l.Check(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		r.At = d.At
		f.faults = []fault{lose, hangAfter, pass}
		if d, err := l.Release(t.Context(), r); err != nil || d.Used != 0 {
			t.Errorf("Release = %+v, %v, want nothing used", d, err)
		}
		f.faults = []fault{lose, pass}
		if d, err := l.Reset(t.Context(), r); err != nil || d.Used != 0 {
			t.Errorf("Reset = %+v, %v, want nothing used", d, err)
		}
	})
}

// An outage is answered in time: by the error without a cache, or with
// DenyOutage, and by this instance's memory with one.
func TestOutageIsAnsweredInTime(t *testing.T) {
	for name, f := range map[string]fault{"hanging": hang, "refused": refuse, "throttled": throttle, "denied": deny} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: new(memstore.Store), faults: []fault{f}}
			l := &Limiter{Store: f, Timeout: time.Second, Cache: NewCache(10), DenyOutage: true}
			for _, ask := range []func(context.Context, Request) (Decision, error){l.Check, l.Status, l.Release, l.Reset} {
				began := time.Now()
				_, err := ask(t.Context(), new(ids).next(1))
				if !errors.As(err, new(*StoreError)) {
					t.Errorf("%s: the error is %v, want a StoreError", name, err)
				}
				if took := time.Since(began); took >= time.Second || name == "denied" && took > 0 {
					t.Errorf("%s: answered after %v", name, took)
				}
			}
			if name != "denied" && f.sent < 4*4 {
				t.Errorf("%s: %d attempts for 4 decisions, want more", name, f.sent)
			}
		})
	}
}

func TestAttemptsLeaveTimeForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timeouts []time.Duration
		measure := func(ctx context.Context, perform func() error) error {
			by, _ := ctx.Deadline()
			timeouts = append(timeouts, time.Until(by))
			return perform()
		}
		f := &faulty{Store: new(memstore.Store), faults: []fault{measure}}
		l := &Limiter{Store: f, Timeout: 900 * time.Millisecond}
		var r ids
		check := func() {
			t.Helper()
			if _, err := l.Check(t.Context(), r.next(1)); err != nil {
				t.Fatal(err)
			}
		}
		check()
		check()
		f.faults = []fault{hang, measure} // 300 ms of 900
		check()
		// Half of what is left before a connection stands, a third after.
		want := []time.Duration{450 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond}
		if !slices.Equal(timeouts, want) {
			t.Errorf("attempts of %v, want %v", timeouts, want)
		}
	})
}

// However short the time, a store that answers is asked.
func TestAShortTimeoutStillAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{time.Nanosecond, time.Millisecond, 9 * time.Millisecond, 20 * time.Millisecond} {
			f := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
			l := &Limiter{Store: f, Timeout: timeout, Cache: NewCache(1)}
			for range 2 {
				if d, err := l.Check(t.Context(), new(ids).next(1)); err != nil || d.Outage != nil || d.Requests != 1 {
					t.Errorf("within %v: %+v, %v, want the store's answer", timeout, d, err)
				}
			}
		}
	})
}

func TestACallerWhoLeavesEndsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		f := &faulty{Store: new(memstore.Store), faults: []fault{refuse}}
		l := &Limiter{Store: f, Timeout: time.Second}
		if _, err := l.Check(ctx, new(ids).next(1)); err == nil || f.sent > 1 {
			t.Errorf("%d attempts, error %v, want an error without an attempt", f.sent, err)
		}
	})
}
