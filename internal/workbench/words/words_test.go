package words_test

import (
	"testing"

	. "github.com/cric-talk/guards/internal/workbench/words"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 999_999: "999,999", 1_234_567: "1,234,567"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestReached(t *testing.T) {
	for got, want := range map[string]string{Reached(0, false): "", Reached(80, false): ", crossed 80 %", Reached(100, true): ", locked"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
