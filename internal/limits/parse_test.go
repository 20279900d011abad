package limits_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

func TestParseRate(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]struct {
		limit  int64
		window time.Duration
	}{
		"20/1m":        {20, time.Minute},
		"100/12h":      {100, 12 * time.Hour},
		"1/5s":         {1, 5 * time.Second},
		"50/1h":        {50, time.Hour},
		"200/1d":       {200, day},
		"10/250ms":     {10, 250 * time.Millisecond},
		"1/1ms":        {1, time.Millisecond},
		"10/90m":       {10, 90 * time.Minute},
		"1000000/366d": {1_000_000, 366 * day},
		"1/8784h":      {1, 366 * day},
	} {
		if limit, window, err := ParseRate(text); limit != want.limit || window != want.window || err != nil {
			t.Errorf("%s is %d in %v, %v, want %d in %v", text, limit, window, err, want.limit, want.window)
		}
	}
}

func TestParseRateRefuses(t *testing.T) {
	for _, text := range []string{
		"", "/", "20", "20/", "/1m", "20/m", "20/1", "20/1 m", " 20/1m", "20/1m ", "20 / 1m", "20/1M", "20/1min", "20/1w", "20/1us",
		"20/1m30s", "20/1h1m", "20/0.5s", "20/1e3s", "2.5/1m", "1e3/1m", "20/1m/2", "20/1m,30/1h", "20-1m", "+20/1m", "-20/1m", "20/-1m",
		"0/1m", "20/0m", "020/1m", "20/01m", "00/1m", "1000001/1m", "1/367d", "1/8785h", "20/1ssm", "20/1smm",
		"9223372036854775808/1m", "20/9223372036854775807d", "20/99999999999999999999999s", "٢٠/1m", "20/1µs", "20\x00/1m",
	} {
		limit, window, err := ParseRate(text)
		if err == nil || limit != 0 || window != 0 {
			t.Errorf("%q is %d in %v, %v, want an error", text, limit, window, err)
		}
	}
	_, _, err := ParseRate("zwölf\n" + strings.Repeat("x", 100))
	const want = `rate is "zw\u00f6lf\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", want actions (1 to 1000000), a slash and a time (1ms to 366d; ms, s, m, h or d), such as 20/1m or 100/12h`
	if err == nil || err.Error() != want {
		t.Errorf("the error is\n%v, want\n%s", err, want)
	}
}

// What is taken is a limit that every policy can reckon with, written in one
// way for each unit.
func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"20/1m", "100/12h", "1/5s", "200/1d", "10/250ms", "20/1m30s", "020/1m", "1/366d", "", "/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, window, err := ParseRate(text)
		if err != nil {
			if limit != 0 || window != 0 {
				t.Errorf("%q is refused, and is %d in %v", text, limit, window)
			}
			return
		}
		for _, p := range []ratelimit.Policy{ratelimit.FixedWindow{Limit: limit, Window: window}, ratelimit.SlidingWindow{Limit: limit, Window: window}} {
			if err := p.Validate(); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			const now = 1_700_000_000_000
			if u, ok := p.Plan(now, limit)(nil); !ok || p.Figures(now, u.Apply(nil)).Remaining != 0 {
				t.Errorf("%q: all that is allowed does not fit, or leaves something", text)
			}
		}
		again := fmt.Sprintf("%d/%dms", limit, window.Milliseconds())
		if l, w, err := ParseRate(again); l != limit || w != window || err != nil {
			t.Errorf("%q is %d in %v, and %q is %d in %v, %v", text, limit, window, again, l, w, err)
		}
		if unit := strings.TrimLeft(text, "0123456789/"); text != fmt.Sprintf("%d/%d%s", limit, window/unitLength(unit), unit) {
			t.Errorf("%q has another way to be written", text)
		}
	})
}

func unitLength(unit string) time.Duration {
	if unit == "d" {
		return 24 * time.Hour
	}
	length, _ := time.ParseDuration("1" + unit)
	return max(1, length)
}
