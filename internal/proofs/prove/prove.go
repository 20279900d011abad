// Package prove holds what the long proofs share: their bounds, their progress
// lines, their figures, and the page that shows the figures.
//
// A proof is an ordinary test with two sets of bounds. Under make test-long it uses the
// short ones and takes seconds. Under make prove it uses the long ones, takes
// minutes, and saves its figures. Under go test, the slowest proofs try a sample of the
// short ones, see Quick. The command internal/proofs/prove/run then writes
// docs/reliability.md from the saved figures.
package prove

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// start is when the process started.
var start = time.Now()

// Long reports whether the long bounds apply, because make prove set PROVE=1.
func Long() bool { return os.Getenv("PROVE") == "1" }

// Quick reports whether a sample of the short bounds is enough: neither make prove nor
// make test-long runs.
func Quick() bool { return !Long() && !testkit.Long.Runs() }

// Bound returns long if the long bounds apply, and short otherwise.
func Bound[T any](short, long T) T {
	if Long() {
		return long
	}
	return short
}

// Progress prints one line to standard error if the long bounds apply. It prints
// nothing otherwise. The line starts with the time since the process started.
func Progress(format string, args ...any) {
	if Long() {
		fmt.Fprintf(os.Stderr, "%8s  %s\n", time.Since(start).Round(time.Second), fmt.Sprintf(format, args...))
	}
}

// Explain names the page that shows how to read a failure of a proof, if the test fails.
func Explain(t testing.TB, part string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("docs/failing/%s.md shows how to read this.", part)
		}
	})
}
