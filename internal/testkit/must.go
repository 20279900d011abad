package testkit

import "testing"

// A Fataler is a test that can be ended, such as a [testing.T] or a check of package rapid.
type Fataler interface {
	Helper()
	Fatal(args ...any)
}

// Must returns a function that returns a value, and ends the test if there is an error instead. So a step that a
// test needs, but is not about, is one line:
//
//	text := testkit.Must(os.ReadFile(name))(t)
func Must[T any](value T, err error) func(t Fataler) T {
	return func(t Fataler) T {
		t.Helper()
		OK(t, err)
		return value
	}
}

// OK ends the test if there is an error.
func OK(t Fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NoError reports an error. The test goes on.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
