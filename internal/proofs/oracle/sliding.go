package oracle

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/cric-talk/guards/internal/policy"
)

// A sliding limit counts the actions of each period. The previous period weighs as
// much as the window still covers of it.
type sliding struct {
	prefix string
	window int64
	counts counts
	latest int64 // the latest period that an action was counted in
}

// early is how long before its end a period is over, if a clock ahead has begun
// the next one: 2 s for the clock, and 5 s for an update under way.
const early = 7_000

// in returns what counts in period k. An item keeps the latest period and two before it, so
// strict figures alone have earlier ones.
func (m *sliding) in(k int64, strict bool) int64 {
	if !strict && k < m.latest-2 {
		return 0
	}
	return m.counts[k]
}

// At returns the start of the last period that has begun early. Short periods can follow one
// another within that time: alone, four of them count, and beside other limits one.
func (m *sliding) At(now int64) int64 {
	current, most := now/m.window, int64(4)
	if m.prefix != "" {
		most = 1
	}
	for k := min((now+early)/m.window, current+most); k > current; k-- {
		if m.in(k, false) > 0 {
			return k * m.window
		}
	}
	return now
}

func (m *sliding) Used(now int64, _ policy.Rate, strict bool) int64 {
	k := now / m.window
	covered := m.window - now%m.window
	return m.in(k, strict) + m.in(k-1, strict)*covered/m.window
}

func (m *sliding) Fits(now, n int64, r policy.Rate, strict bool) bool {
	return m.Used(now, r, strict)+n <= r.Limit
}

func (m *sliding) Resets(now int64, _ policy.Rate, strict bool) int64 {
	k := now / m.window
	switch {
	case m.in(k, strict) > 0:
		return (k + 2) * m.window
	case m.in(k-1, strict) > 0:
		return (k + 1) * m.window
	}
	return now
}

func (m *sliding) Count(now, n int64, _ policy.Rate) {
	m.counts.add(now/m.window, n)
	m.latest = max(m.latest, now/m.window)
}

func (m *sliding) Holds(now, at, n int64, strict bool) bool {
	k := at / m.window
	return k >= now/m.window-1 && m.in(k, strict) >= n
}

func (m *sliding) Back(_, at, n int64) { m.counts.add(at/m.window, -n) }

func (m *sliding) counter(k int64) string { return m.prefix + "c" + strconv.FormatInt(k, 10) }

func (m *sliding) Counted(at int64, _ policy.Rate, before, after policy.State) int64 {
	name := m.counter(at / m.window)
	return after.Get(name) - before.Get(name)
}

func (m *sliding) Same(s policy.State) bool {
	for k, n := range m.counts {
		if v, ok := s.Find(m.counter(k)); ok && v != n && k >= m.latest-2 {
			return false
		}
	}
	return true
}

func (m *sliding) String() string { return fmt.Sprint(m.counts) }

func (m *sliding) Clone() Model {
	c := *m
	c.counts = maps.Clone(m.counts)
	return &c
}

// Periods of another length start at zero.
func (m *sliding) Deployed(window int64) Model {
	return &sliding{prefix: m.prefix, window: window, counts: counts{}}
}
