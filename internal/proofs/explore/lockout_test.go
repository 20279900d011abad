package explore

import (
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// A series holds the entries that a lockout counts together: the last entry that began a
// series, and all entries after it. Entries that were given back stay in the series, because
// their times matter, too.
type series struct {
	entries []entry
	before  int64 // the latest time of all series before
	locks   int64 // of the series before, unless they are forgotten
}

// n returns how many attempts count.
func (s series) n(limit int) int64 {
	return sum(s.entries, limit, func(entry) bool { return true })
}

// first and last return the earliest and the latest time of an attempt.
func (s series) first() int64 {
	return slices.MinFunc(s.entries, func(a, b entry) int { return int(a.counted - b.counted) }).counted
}

func (s series) last() int64 {
	return max(s.before, slices.MaxFunc(s.entries, func(a, b entry) int { return int(a.counted - b.counted) }).counted)
}

// ends returns when s is over, by the text r, and when its locks are forgotten.
func (s series) ends(r policy.Rate, limit int) (over, forgotten int64) {
	longest := r.MaxLock.Milliseconds()
	if s.n(limit) >= r.Limit {
		over = s.last() + min(longest, r.Lock.Milliseconds()<<s.locks)
		return over, over + longest
	}
	over = s.first() + r.Window.Milliseconds()
	return over, max(over, s.last()+longest)
}

// at returns how many attempts a read shows at now.
func (s series) at(now int64, r policy.Rate, limit int) int64 {
	if len(s.entries) == 0 {
		return 0
	}
	if over, _ := s.ends(r, limit); now >= over {
		return 0
	}
	return s.n(limit)
}

// series returns the series of a lockout among the entries of one item. Each entry begins
// another one if the one before was over then, by the text that has counted it. The list that
// it returns is overwritten by the next call.
func (x *explorer) series(counted []entry, limit int) (s series) {
	s.entries = x.together[:0]
	for _, e := range counted {
		r := x.policyOf(int(e.item), int(e.writer), e.limit).Rates()[limit]
		if r.Kind != "lockout" {
			return series{}
		}
		if e.cleared {
			continue
		}
		if len(s.entries) > 0 {
			over, forgotten := s.ends(r, limit)
			next := series{entries: s.entries[:0], before: s.last(), locks: s.locks}
			if s.n(limit) >= r.Limit {
				next.locks++
			}
			if e.counted >= forgotten {
				next.locks = 0
			}
			if e.counted >= over {
				s = next
			}
		}
		s.entries = append(s.entries, e)
		x.together = s.entries
	}
	return s
}

// turns reports whether the last entry of an item locks, or begins another series.
func (x *explorer) turns(entries []entry, p *rules) bool {
	for k, r := range p.Rates() {
		if s := x.series(entries, k); r.Kind == "lockout" && (s.n(k) >= r.Limit || len(s.entries) == 1) {
			return true
		}
	}
	return false
}

// of returns the entries of an item, in order.
func (x *explorer) of(l *ledger, item int64) []entry {
	return x.which(l.entries, func(e *entry) bool { return e.item == item })
}

// backInSeries notes that a lockout gives back so many units of entry i. The time of the entry
// has to lie in the series. After a clear, that can be a later one, whose attempts it takes then.
func (x *explorer) backInSeries(l *ledger, i, limit int, units int64) error {
	e := l.entries[i]
	s := x.series(x.of(l, e.item), limit)
	if len(s.entries) == 0 || e.counted < s.first() || s.last() < e.counted || s.n(limit) < units {
		return fmt.Errorf("limit %d gives back what does not count: %s", limit, inWords(l.entries))
	}
	for _, k := range append([]int{i}, indexes(l.entries)...) {
		if slices.Contains(s.entries, l.entries[k]) {
			n := min(units, l.entries[k].left[limit])
			l.entries[k].left[limit] -= n
			units -= n
			s = x.series(x.of(l, e.item), limit)
		}
	}
	return nil
}

func indexes(entries []entry) (all []int) {
	for i := range entries {
		all = append(all, i)
	}
	return all
}

// inSeries reports whether c still is in the series of a lockout of the ending's policy.
func (x *explorer) inSeries(e *ending, c entry) bool {
	for k, r := range e.call.Policy.Rates() {
		if r.Kind == "lockout" && c.left[k] > 0 && slices.Contains(x.series(x.of(e.ledger, c.item), k).entries, c) {
			return true
		}
	}
	return false
}

// cleared notes a release with clear that the store performed. It gives back what it can, and
// ends each series of its policy.
func (x *explorer) cleared(l *ledger, w *written) error {
	item, id := w.item, x.idOf(w.slot)
	p := x.policyOf(int(item), x.version(w.slot), w.limit)
	gives := w.write.Drop.Set != "" || slices.ContainsFunc(p.Rates(), func(r policy.Rate) bool { return r.Kind == "log" && changes(w, r.Name) })
	one := receipt{id, w.call.At, item, true}
	switch {
	case slices.Contains(l.back, one) && w.write.Now-w.call.At < remembered:
		return fmt.Errorf("%s clears again what %s counts", name(w.slot), inWords(l.entries))
	case gives:
		if err := x.gaveBack(l, w); err != nil {
			return err
		}
	default:
		l.makeRoom(w.slot, w.by, w.ms, w.replied)
	}
	l.back = append(l.back, one)
	for i := range l.entries {
		e := &l.entries[i]
		if e.item != item {
			continue
		}
		e.cleared = true
		for k, r := range p.Rates() {
			if r.Kind == "lockout" {
				e.left[k] = 0
			}
		}
	}
	return nil
}

// toldCleared requires that a release with clear has ended the series of an item that has a
// lockout, unless the item was deleted since.
func (x *explorer) toldCleared(e *ending) error {
	deleted := e.ledger.removed != [slots]uint8{}
	if !e.call.Clear || !e.call.Policy.HasLockout() || deleted || slices.Contains(e.ledger.back, receipt{e.id, e.call.At, e.item, true}) {
		return nil
	}
	return fmt.Errorf("nothing was cleared: %s", inWords(e.ledger.entries))
}

// locks reports whether a lockout is among the limits of y.
func (y *system) locks() bool {
	return slices.ContainsFunc(slices.Concat(y.policies, y.dear, y.room, y.dearRoom), func(p *rules) bool { return p.HasLockout() })
}

// locks returns those that have a lockout.
func locks(all []subject) (subjects []subject) {
	for _, s := range all {
		if policy.Must(s.text[0]).HasLockout() {
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// liveLocks returns a lockout whose other numbers change, too.
func liveLocks() []subject {
	return []subject{
		{kinds: "lockout", text: []string{"lockout 2/10s for 2s to 4s", "lockout 1/10s for 1s", "lockout 4/10s for 2s"}},
		{kinds: "lockout", text: []string{"lockout 2/10s for 2s", "lockout 2/10s for 6s"}},
	}
}

// locksInRooms returns users with a lockout in a room that has none, and the other way round.
func locksInRooms() (subjects []subject) {
	lock := "lockout 2/10s for 2s to 4s"
	for _, s := range [][2]string{{lock, "4/20s"}, {lock, "log 4/20s"}, {"a: log 4/20s, b: " + lock, "sliding 4/20s"}, {lock, "lockout 4/10s for 2s"}, {"bucket 4/20s", lock}} {
		subjects = append(subjects, subject{kinds: "lockout in a room", text: []string{s[0]}, room: []string{s[1]}})
	}
	return subjects
}
