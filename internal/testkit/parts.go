package testkit

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A Part is a set of tests that make test leaves out. The variable TESTS names the parts that run:
//
//	TESTS='clients long' go test ./...
//
// make test-NAME runs the packages of one part, and make test-all runs all of them. scripts/test lists the packages.
type Part string

// Parts of the tests.
const (
	Clients  Part = "clients"  // need AWS's clients, the clients in three languages, or a browser
	Projects Part = "projects" // compile a copy of the repository, new projects, or a release
	Long     Part = "long"     // have long bounds, or wait for minutes
)

// AllParts is the value of TESTS with which all tests run.
const AllParts = string(Clients + " " + Projects + " " + Long)

// Runs reports whether TESTS names the part.
func (p Part) Runs() bool { return slices.Contains(strings.Fields(os.Getenv("TESTS")), string(p)) }

// Need skips the test unless its part runs.
func (p Part) Need(t testing.TB) {
	t.Helper()
	if !p.Runs() {
		t.Skip("make test-" + string(p) + " runs this test")
	}
}

// Bound returns long if the part Long runs, and short otherwise. A proof has a third bound, see package prove.
func Bound[T any](short, long T) T {
	if Long.Runs() {
		return long
	}
	return short
}
