package oracle

import (
	"fmt"

	"github.com/cric-talk/guards/internal/policy"
)

// A reservoir knows the latest window with places, and how many places that
// window has given.
type reservoir struct {
	prefix string
	window int64
	key    int64
	given  int64
	from   int64 // when the latest window with places began, by the limit that gave the first of them
}

func (m *reservoir) At(now int64) int64 { return now }

// place returns the start of the window of the next place.
func (m *reservoir) place(now int64, r policy.Rate) int64 {
	switch k := now / m.window; {
	case m.key < k || m.key == k && m.given == 0:
		return k * m.window
	case m.given >= r.Limit:
		return (m.key + 1) * m.window
	}
	return m.key * m.window
}

func (m *reservoir) Used(now int64, r policy.Rate, _ bool) int64 {
	switch k := now / m.window; {
	case m.key > k:
		return r.Limit
	case m.key == k:
		return m.given
	}
	return 0
}

func (m *reservoir) Fits(now, _ int64, r policy.Rate, _ bool) bool {
	return m.place(now, r) <= now+r.Ahead.Milliseconds()
}

func (m *reservoir) Resets(now int64, r policy.Rate, _ bool) int64 {
	if m.Used(now, r, true) == 0 {
		return now
	}
	return (m.key + 1) * m.window
}

func (m *reservoir) Count(now, _ int64, r policy.Rate) {
	if k := m.place(now, r) / m.window; k != m.key {
		m.key, m.given, m.from = k, 0, k*m.window
	}
	m.given++
}

func (m *reservoir) Holds(_, _, _ int64, _ bool) bool { return false }

func (m *reservoir) Back(_, _, _ int64) {}

func (m *reservoir) Counted(int64, policy.Rate, policy.State, policy.State) int64 { return 1 }

func (m *reservoir) Same(s policy.State) bool {
	return s.Get(m.prefix+"t") == m.ticket()
}

// waiting returns the places given in later windows up to the one at place.
func (m *reservoir) waiting(now, place int64, r policy.Rate) int64 {
	given := r.Limit
	if place/m.window >= m.key {
		given = min(m.given, r.Limit)
	}
	return (place/m.window-now/m.window-1)*r.Limit + given
}

func (m *reservoir) String() string {
	return fmt.Sprintf("%d in %d, from %d", m.given, m.key, m.from)
}

func (m *reservoir) Clone() Model {
	c := *m
	return &c
}

// All places stay given.
func (m *reservoir) Deployed(window int64) Model {
	return &reservoir{prefix: m.prefix, window: window, key: m.from / window, given: m.given, from: m.from}
}

// ticket returns the latest place as an item keeps it.
func (m *reservoir) ticket() int64 { return m.from*1_000_000 + m.given }

// skip gives all places up to a later ticket of another account, unless its window has
// passed. It reports whether it is later.
func (m *reservoir) skip(now, ticket int64) bool {
	from := ticket / 1_000_000
	if ticket <= m.ticket() || from < now/m.window*m.window {
		return false
	}
	m.key, m.given, m.from = from/m.window, ticket%1_000_000, from
	return true
}

// give gives a place at this time, and reports whether the model would.
func (m *reservoir) give(place int64, r policy.Rate) bool {
	window := place / m.window
	if window > m.key {
		m.key, m.given, m.from = window, 0, window*m.window
	}
	m.given++
	return window == m.key && m.given <= r.Limit
}
