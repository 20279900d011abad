package policy_test

import (
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

// The largest numbers that the errors name are accepted.
func TestParseAcceptsTheLargestNumbers(t *testing.T) {
	for _, text := range []string{
		"40000/366d", "1/3ms", "log 100/366d", "sliding 1000000/366d", "reservoir 999999/366d ahead 366d",
		"bucket 1/366d", "bucket 1/183d burst 2", "bucket 1000000/50m", "bucket 1/3ms burst 1000000 keep 366d",
		"a: 999999/1h, b: sliding 1000000/1h", "eightabc: 1/1m, b: 1/1h",
		"a: 1/1m, b: 1/1m, c: 1/1m, d: 1/1m, e: 1/1m, f: 1/1m, g: 1/1m, h: 1/1m",
	} {
		if p, err := Parse(text); err != nil || p.String() != text {
			t.Errorf("Parse(%q) = %q, %v", text, p, err)
		}
	}
}

// An error shows 60 characters of a text.
func TestParseShowsATextOf60Characters(t *testing.T) {
	for _, length := range []int{60, 61, 1000} {
		_, err := Parse(strings.Repeat("x", length))
		if want := `limit is "` + strings.Repeat("x", 60) + `": `; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d characters: the error is %v, want it to begin with %s", length, err, want)
		}
	}
}
