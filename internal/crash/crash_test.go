package crash_test

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/crash"
)

func TestContain(t *testing.T) {
	fail := func() (value any) {
		defer func() { value = recover() }()
		func() {
			defer crash.Contain()
			panic("a mistake")
		}()
		return nil
	}
	if got := fail(); got != "a mistake" {
		t.Errorf("without Report: %v, want the panic to go on", got)
	}
	var reported any
	var where string
	crash.Report(func(value any, stack []byte) { reported, where = value, string(stack) })
	if got := fail(); got != nil || reported != "a mistake" || !strings.Contains(where, "crash_test.go") {
		t.Errorf("%v went on; %v was reported from %s", got, reported, where)
	}
}
