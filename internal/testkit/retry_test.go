package testkit_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// recorder is a test that only records what happens to it.
type recorder struct {
	testing.TB
	errors, fatals int
	skipped        bool
	reason         string // of the last Skip or Fatal
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return context.Background() }
func (r *recorder) Skipped() bool            { return r.skipped }
func (r *recorder) Skip(args ...any) {
	r.skipped, r.reason = true, fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Error(...any) { r.errors++ }
func (r *recorder) Fatal(args ...any) {
	r.fatals, r.reason = r.fatals+1, fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Cleanup(f func())    { f() }
func (r *recorder) Logf(string, ...any) {}

// record runs a test on a goroutine of its own, which Fatal and Skip end.
func record(test func(testing.TB)) *recorder {
	r := new(recorder)
	var wg sync.WaitGroup
	wg.Go(func() { test(r) })
	wg.Wait()
	return r
}

func TestATestRunsUntilItPasses(t *testing.T) {
	for passes := 1; passes <= testkit.Tries+1; passes++ {
		for name, fail := range map[string]func(testing.TB){
			"Error":              func(t testing.TB) { t.Error("e") },
			"Fatal":              func(t testing.TB) { t.Fatal("f") },
			"Error in a cleanup": func(t testing.TB) { t.Cleanup(func() { t.Error("c") }) },
			"Fatal in a cleanup": func(t testing.TB) { t.Cleanup(func() { t.Fatal("c") }) },
		} {
			runs := 0
			r := record(func(t testing.TB) {
				testkit.Retry(t, func(t testing.TB) {
					if runs++; runs < passes {
						fail(t)
					}
				})
			})
			if failed := r.errors+r.fatals == 1; runs != min(passes, testkit.Tries) || failed != (passes > testkit.Tries) {
				t.Errorf("%s until run %d: %d runs and %+v", name, passes, runs, r)
			}
		}
	}
}
