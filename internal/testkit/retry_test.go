package testkit_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// recorder is a test that only records what happens to it.
type recorder struct {
	testing.TB
	errors, fatals int
	skipped        bool
	log            []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return context.Background() }
func (r *recorder) Skipped() bool            { return r.skipped }
func (r *recorder) Skip(...any)              { r.skipped = true; runtime.Goexit() }
func (r *recorder) Error(...any)             { r.errors++ }
func (r *recorder) Fatal(...any)             { r.fatals++; runtime.Goexit() }
func (r *recorder) Cleanup(f func())         { f() }
func (r *recorder) Logf(f string, a ...any)  { r.log = append(r.log, fmt.Sprintf(f, a...)) }

// run calls testkit.Retry on its own goroutine, which Fatal and Skip end.
func run(test func(testing.TB)) *recorder {
	r := new(recorder)
	var wg sync.WaitGroup
	wg.Go(func() { testkit.Retry(r, test) })
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
			r := run(func(t testing.TB) {
				if runs++; runs < passes {
					fail(t)
				}
			})
			if failed := r.errors+r.fatals == 1; runs != min(passes, testkit.Tries) || failed != (passes > testkit.Tries) {
				t.Errorf("%s until run %d: %d runs and %+v", name, passes, runs, r)
			}
		}
	}
}

func TestCleanupsRunAfterEachTry(t *testing.T) {
	var order []string
	first := true
	r := run(func(t testing.TB) {
		note := func(name string) func() {
			return func() { order = append(order, fmt.Sprint(name, " ", t.Context().Err())) }
		}
		t.Cleanup(note("a"))
		t.Cleanup(func() { t.Cleanup(note("b")); note("c")() })
		note("body")()
		if first {
			first = false
			t.Errorf("%d", 7)
			t.FailNow()
		}
	})
	one := []string{"body <nil>", "c context canceled", "b context canceled", "a context canceled"}
	if want := slices.Concat(one, one); !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	if want := []string{"try 1 failed:\n7"}; !slices.Equal(r.log, want) || r.errors > 0 {
		t.Errorf("%+v, want the log %q", r, want)
	}
}

func TestASkippedTestIsNotRepeated(t *testing.T) {
	runs := 0
	r := run(func(t testing.TB) { runs++; t.Skip("no server") })
	if runs != 1 || !r.skipped || r.errors+r.fatals > 0 {
		t.Errorf("%d runs and %+v, want one", runs, r)
	}
}
