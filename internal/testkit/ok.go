package testkit

// A stopper is a test that can end at once, such as a testing.T or a rapid.T.
type stopper interface {
	Helper()
	Fatal(args ...any)
}

// OK ends a test at once if a step that it needs fails.
func OK(t stopper, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
