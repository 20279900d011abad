package oracle

import (
	"fmt"
	"maps"

	"github.com/cric-talk/guards/internal/policy"
)

// A fixed limit counts the actions of each window of the clock. Beside other
// limits it counts in one item, so no window counts any more once a later one
// has begun.
type fixed struct {
	prefix  string
	windows Windows
	counts  counts
	begun   int64 // the latest window that an action was counted in
	from    int64 // when that window began; another window before a deploy may have begun within it
	shown   int64 // 0: all windows; else later windows read as empty
}

// Beside other limits, an action on a clock behind counts in the window that the clock ahead
// has begun.
func (m *fixed) At(now int64) int64 {
	if m.prefix != "" && m.begun > m.windows.Key(now) {
		return m.from
	}
	return now
}

// key returns the window that counts at now.
func (m *fixed) key(now int64) int64 {
	if m.prefix != "" {
		return max(m.windows.Key(now), m.begun)
	}
	return m.windows.Key(now)
}

func (m *fixed) Used(now int64, _ policy.Rate, _ bool) int64 {
	if m.shown > 0 && m.key(now) > m.shown {
		return 0
	}
	return m.counts[m.key(now)]
}

func (m *fixed) Fits(now, n int64, r policy.Rate, strict bool) bool {
	return m.key(now) == m.windows.Key(now) && m.Used(now, r, strict)+n <= r.Limit
}

func (m *fixed) Resets(now int64, _ policy.Rate, _ bool) int64 {
	return m.windows.Begins(m.key(now) + 1)
}

func (m *fixed) Count(now, n int64, _ policy.Rate) {
	k := m.windows.Key(now)
	if m.counts.add(k, n); k > m.begun {
		m.begun, m.from = k, m.windows.Begins(k)
	}
}

func (m *fixed) Holds(now, at, n int64, _ bool) bool {
	k := m.windows.Key(at)
	return m.windows.Key(now) == k && m.key(now) == k && m.counts[k] >= n && (m.prefix == "" || at >= m.from)
}

func (m *fixed) Back(_, at, n int64) { m.counts.add(m.windows.Key(at), -n) }

func (m *fixed) Counted(_ int64, _ policy.Rate, before, after policy.State) int64 {
	if m.prefix == "" {
		return after.Get("activityCount") - before.Get("activityCount")
	}
	was, is := before.Get(m.prefix+"s"), after.Get(m.prefix+"s")
	if was/1_000_000 != is/1_000_000 {
		return is % 1_000_000
	}
	return is - was
}

func (m *fixed) Same(s policy.State) bool {
	if m.prefix == "" {
		return true // the item does not show its window; counted compares each change
	}
	return s.Get(m.prefix+"s") == m.from*1_000_000+m.counts[m.begun]
}

func (m *fixed) String() string { return fmt.Sprint(m.counts, " begun at ", m.from) }

func (m *fixed) Clone() Model {
	c := *m
	c.counts = maps.Clone(m.counts)
	return &c
}

// A window alone has an item of its own, so a new one starts at zero. Beside other
// limits, the latest window stays, and counts if it began within the current one.
func (m *fixed) Deployed(window int64) Model {
	n := &fixed{prefix: m.prefix, windows: Windows{length: window}, counts: counts{}}
	if m.prefix != "" {
		n.begun, n.from = m.from/window, m.from
		n.counts[n.begun] = m.counts[m.begun]
	}
	return n
}

// counts are what was counted, by the number of the window. None is zero.
type counts map[int64]int64

func (c counts) add(key, n int64) {
	if c[key] += n; c[key] == 0 {
		delete(c, key)
	}
}
