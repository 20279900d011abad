package policy_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
)

// Two versions of a sliding limit count in one item, during a deploy or a canary. Neither
// removes what the other counts, so each keeps its own limit, and the item stays small.
func TestTwoWindowsSideBySide(t *testing.T) {
	for _, pair := range [][2]string{
		{"sliding 10/1m", "sliding 10/1h"}, {"sliding 10/1m", "sliding 10/5m"}, {"sliding 5/5s", "sliding 10/1h"}, {"sliding 10/1h", "sliding 10/1d"},
		{"sliding 10/1d", "sliding 10/28d"}, {"sliding 10/12h", "sliding 20/12h"}, {"sliding 10/1m", "log 10/1h"}, {"sliding 10/1d", "log 10/12h"},
	} {
		for _, texts := range [][2]string{pair, {pair[1], pair[0]}} {
			s := State{}
			ps := [2]Policy{Must(texts[0]), Must(texts[1])}
			shortest := min(ps[0].Rates()[0].Window, ps[1].Rates()[0].Window)
			start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli()
			var taken [2][]int64
			for step := range 2000 { // the windows turn many times
				now := start + int64(step)*shortest.Milliseconds()/40
				i := step % 2
				known := s
				if step%7 == 0 { // an instance that does not know the item
					known = nil
				}
				u, ok := ps[i].Take(now, 1, uint64(step), known)
				if !ok || !u.Holds(s) {
					if u, ok = ps[i].Take(now, 1, uint64(step), s); !ok || !u.Holds(s) {
						continue
					}
				}
				s = u.Apply(s)
				taken[i] = append(taken[i], now)
				if len(s) > 40 {
					t.Fatalf("%s beside %s: the item has %d attributes", texts[0], texts[1], len(s))
				}
			}
			for i, p := range ps {
				r := p.Rates()[0]
				most := r.Limit // a sliding counter admits at most twice the limit in any window
				if r.Kind == "sliding" {
					most *= 2
				}
				for first, at := range taken[i] {
					n := int64(0)
					for _, later := range taken[i][first:] {
						if later < at+r.Window.Milliseconds() {
							n++
						}
					}
					if n > most {
						t.Fatalf("%s beside %s: %d of %s within one window, want at most %d", texts[0], texts[1], n, texts[i], most)
					}
				}
			}
		}
	}
}
