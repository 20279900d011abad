package command

import (
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		ms   float64
		want string
	}{
		{0, "0 ms"}, {0.0001, "1 ms"}, {998.1, "999 ms"}, {999.1, "1 s"},
		{1, "1 ms"}, {999, "999 ms"}, {1000, "1 s"}, {41001, "42 s"}, {119_000, "119 s"}, {120_000, "2 min"},
		{120_001, "3 min"}, {3_540_000, "59 min"}, {3_540_001, "1 h 0 min"}, {4_140_000, "1 h 9 min"}, {7_140_000, "1 h 59 min"}, {7_200_000, "2 h 0 min"}, {43_199_999, "12 h 0 min"},
	} {
		if got := wait(time.Duration(tt.ms * float64(time.Millisecond))); got != tt.want {
			t.Errorf("wait of %v ms is %q, want %q", tt.ms, got, tt.want)
		}
	}
}
