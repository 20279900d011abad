package testkit

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Tries is how often Retry runs a test at most.
const Tries = 5

// Retry runs test until it passes, at most five times. It is for a test with
// the product's own time limits, such as an answer 100 ms before a deadline. A
// busy machine can exceed them now and then, but a bug fails every try. Each
// try must start from nothing, with tables and instances of its own. What it
// passes to Cleanup runs when the try ends, and can fail it. The last try is an
// ordinary test.
func Retry(t testing.TB, test func(t testing.TB)) {
	t.Helper()
	for n := range Tries - 1 {
		a := &attempt{TB: t}
		a.run(test)
		if t.Skipped() {
			runtime.Goexit()
		}
		if !a.Failed() {
			return
		}
		t.Logf("try %d failed:\n%s", n+1, strings.Join(a.problems, "\n"))
	}
	test(t)
}

// An attempt is one try. It keeps its failures to itself.
type attempt struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	failed   bool
	problems []string
	cleanups []func()
}

// run runs test to its end or to its first call of FailNow, and then the
// cleanups, the last one first.
func (a *attempt) run(test func(testing.TB)) {
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithCancel(a.TB.Context())
	a.untilFailNow(func() { test(a) })
	cancel()
	for next := a.cleanup(); next != nil; next = a.cleanup() {
		a.untilFailNow(next)
	}
}

// untilFailNow runs f on a goroutine of its own, which FailNow can end.
func (a *attempt) untilFailNow(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

// cleanup removes the last function that was passed to Cleanup, and returns it.
// It returns nil if there is none.
func (a *attempt) cleanup() (last func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.cleanups); n > 0 {
		last = a.cleanups[n-1]
		a.cleanups = a.cleanups[:n-1]
	}
	return last
}

func (a *attempt) fail(problem string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
	if problem != "" {
		a.problems = append(a.problems, strings.TrimSuffix(problem, "\n"))
	}
}

// These methods implement [testing.TB] for the try instead of the test.

func (a *attempt) Context() context.Context { return a.ctx }

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *attempt) Fail()                             { a.fail("") }
func (a *attempt) FailNow()                          { a.fail(""); runtime.Goexit() }
func (a *attempt) Error(args ...any)                 { a.fail(fmt.Sprintln(args...)) }
func (a *attempt) Errorf(format string, args ...any) { a.fail(fmt.Sprintf(format, args...)) }
func (a *attempt) Fatal(args ...any)                 { a.Error(args...); runtime.Goexit() }
func (a *attempt) Fatalf(format string, args ...any) { a.Errorf(format, args...); runtime.Goexit() }
