package policy_test

import (
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

// Law 4 with windows of some seconds. Law 4 draws windows of milliseconds, and
// the rounding of the expiry to a whole second hides a mistake of that size.
//
// Each policy counts until it refuses, at several moments. When the item
// expires, it must read like an empty one on a clock that is 120 s behind.
func TestAFullItemMattersUntilItExpires(t *testing.T) {
	for _, text := range []string{
		"bucket 3/9s burst 4", "bucket 1/5s keep 1h", "log 3/7s", "sliding 3/7s",
		"reservoir 3/7s ahead 20s", "reservoir 1/10s ahead 15m", "a: reservoir 1/10s ahead 1m, b: 4/7s", "a: log 3/7s, b: sliding 9/40s",
	} {
		p := Must(text)
		for _, after := range []int64{0, 1, 3999, 6999, 9000} {
			now := start + after
			s := full(p, now, full(p, start, nil))
			_, expires := p.Item(now)
			at := expires*1000 - 120_000
			if got, want := p.Read(at, 0, s), p.Read(at, 0, nil); got.Used != want.Used || got.Remaining != want.Remaining {
				t.Errorf("%s: the item of %d ms expires while it reads %+v", text, after, got)
			}
		}
	}
}

// full counts actions at now until the policy refuses.
func full(p Policy, now int64, s State) State {
	for range 1000 {
		u, ok := p.Take(now, 1, 1, s)
		if !ok {
			break
		}
		s = u.Apply(s)
	}
	return s
}
