package explore

import (
	"fmt"

	"github.com/cric-talk/guards/internal/policy"
)

// shown has a function for each kind whose figures can be told from the counted
// actions alone. It returns how many actions a read shows at now. At now no clock
// is ahead.
var shown = map[string]func(r policy.Rate, counted []entry, limit int, now int64) int64{
	"fixed": func(r policy.Rate, counted []entry, limit int, now int64) int64 {
		return sum(counted, limit, func(e entry) bool { return windowOf(r, e.counted) == windowOf(r, now) })
	},
	"log": func(r policy.Rate, counted []entry, limit int, now int64) int64 {
		return sum(counted, limit, func(e entry) bool { return e.latest() > now-r.Window.Milliseconds() })
	},
	"sliding": func(r policy.Rate, counted []entry, limit int, now int64) int64 {
		w := r.Window.Milliseconds()
		in := func(period int64) int64 {
			return sum(counted, limit, func(e entry) bool { return e.counted/w == period })
		}
		return in(now/w) + in(now/w-1)*(w-now%w)/w // of the period before, the part that the window still covers
	},
}

// agrees requires that the item shows what the ledger has counted, at the latest
// action that the item ever had, and at each later instant.
func (x *explorer) agrees(l *ledger, w *written) error {
	item := x.number(w.write.Key)
	p := x.policyOf(item, x.version(w.slot), w.limit)
	latest := l.met(int64(item), w.write.Now)
	mine := x.which(l.entries, func(e *entry) bool { return e.item == int64(item) && !x.isApart(e, w.slot) })
	for t := -1; t < len(x.instants); t++ {
		now := latest
		if t >= 0 {
			now = x.time(uint8(t), 1)
		}
		if window, _ := p.Item(now); now < latest || window != w.write.Key.Window {
			continue
		}
		for i, got := range counts(p, now, w.after) {
			r := p.Rates()[i]
			if r.Kind == "lockout" && got != x.series(mine, i).at(now, r, i) {
				return fmt.Errorf("limit %d shows %d at %s, want %d", i, got, moment(now), x.series(mine, i).at(now, r, i))
			}
			if want, ok := shown[r.Kind]; ok && got != want(r, mine, i, now) {
				return fmt.Errorf("limit %d shows %d at %s, want %d", i, got, moment(now), want(r, mine, i, now))
			}
		}
	}
	return nil
}

// which returns some of the entries, in a list that the next call overwrites.
func (x *explorer) which(entries []entry, which func(*entry) bool) []entry {
	x.some = x.some[:0]
	for i := range entries {
		if which(&entries[i]) {
			x.some = append(x.some, entries[i])
		}
	}
	return x.some
}

// gone has one function for each kind. It reports whether what a limit counted as
// entry i does not count any more at now, so that nothing of it can be given
// back.
var gone = map[string]func(r policy.Rate, entries []entry, limit, i int, now int64) bool{
	"fixed": func(r policy.Rate, entries []entry, _, i int, now int64) bool {
		return windowOf(r, entries[i].counted) != windowOf(r, now)
	},
	"log": func(r policy.Rate, entries []entry, _, i int, now int64) bool {
		return entries[i].latest() <= now-r.Window.Milliseconds()
	},
	"sliding": func(r policy.Rate, entries []entry, _, i int, now int64) bool {
		return entries[i].counted/r.Window.Milliseconds() < now/r.Window.Milliseconds()-1
	},
	"reservoir": func(policy.Rate, []entry, int, int, int64) bool { return true },
	"bucket":    hasBeenFull,
}

// hasBeenFull reports whether a bucket has been full since it counted entry i,
// and counted something after that. If it counted nothing after that, giving back
// changes the item and no figure.
// What was given back before only makes it full earlier.
func hasBeenFull(r policy.Rate, entries []entry, limit, i int, _ int64) bool {
	interval := r.Window.Milliseconds() / r.Limit
	var full int64 // when it is full again
	for k, e := range entries {
		if e.item != entries[i].item {
			continue
		}
		if k > i && full <= e.counted {
			return true
		}
		full = max(full, e.counted) + e.left[limit]*interval
	}
	return false
}
