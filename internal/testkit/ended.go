package testkit

import (
	"runtime"
	"sync"
	"testing"
)

// Ended runs a test and returns the reason with which it skipped or failed
// itself. Both are empty if it ran to its end. The test may call only Helper,
// Skip and Fatal, each with one text.
func Ended(test func(t testing.TB)) (skipped, failed string) {
	var o outcome
	var wg sync.WaitGroup
	wg.Go(func() { test(&o) })
	wg.Wait()
	return o.skipped, o.failed
}

// An outcome is a test that only records whether it was skipped or failed.
type outcome struct {
	testing.TB
	skipped, failed string
}

func (o *outcome) Helper()           {}
func (o *outcome) Skip(args ...any)  { o.skipped = args[0].(string); runtime.Goexit() }
func (o *outcome) Fatal(args ...any) { o.failed = args[0].(string); runtime.Goexit() }
