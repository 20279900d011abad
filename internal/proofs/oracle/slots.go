package oracle

import (
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// Slots hold the time of each action of a log. An action counts for one window.
type slots struct {
	names  []string // of the attributes
	window int64
	times  []int64
	latest int64 // the latest time when an action was counted
}

func slotNames(prefix string) (names []string) {
	for letter := 'a'; letter <= 'j'; letter++ {
		for digit := '0'; digit <= '9'; digit++ {
			names = append(names, prefix+string(letter)+string(digit))
		}
	}
	return names
}

const year2020 = 1_577_836_800_000 // slots count from here

func (m *slots) At(now int64) int64 { return now }

// over returns the latest time that does not count any more.
func (m *slots) over(now int64, strict bool) int64 {
	if !strict {
		now = max(now, m.latest)
	}
	return now - m.window
}

func (m *slots) Used(now int64, _ policy.Rate, strict bool) (n int64) {
	over := m.over(now, strict)
	for _, t := range m.times {
		if t > over {
			n++
		}
	}
	return n
}

func (m *slots) Fits(now, n int64, r policy.Rate, strict bool) bool {
	return m.Used(now, r, strict)+n <= r.Limit
}

func (m *slots) Resets(now int64, _ policy.Rate, strict bool) int64 {
	if len(m.times) == 0 {
		return now
	}
	if newest := slices.Max(m.times); newest > m.over(now, strict) {
		return newest + m.window
	}
	return now
}

func (m *slots) Count(now, n int64, _ policy.Rate) {
	m.latest = max(m.latest, now)
	for range n {
		m.times = append(m.times, now)
	}
	const behind = 300_000 // no clock here is further behind, updates under way included
	m.times = slices.DeleteFunc(m.times, func(t int64) bool { return t < m.latest-m.window-behind })
}

func (m *slots) Holds(now, at, n int64, strict bool) bool {
	for _, t := range m.times {
		if t == at {
			n--
		}
	}
	return at > m.over(now, strict) && n <= 0
}

func (m *slots) Back(_, at, n int64) {
	m.times = slices.DeleteFunc(m.times, func(t int64) bool {
		if t != at || n == 0 {
			return false
		}
		n--
		return true
	})
}

func (m *slots) Counted(at int64, _ policy.Rate, before, after policy.State) (n int64) {
	for _, name := range m.names {
		if t, ok := after.Find(name); ok && t+year2020 == at {
			n++
		}
		if t, ok := before.Find(name); ok && t+year2020 == at {
			n--
		}
	}
	return n
}

func (m *slots) Same(s policy.State) bool {
	var n, sum int64
	for _, name := range m.names {
		if t, ok := s.Find(name); ok && t+year2020 > m.latest-m.window {
			n++
			sum += t + year2020
		}
	}
	for _, t := range m.times {
		if t > m.latest-m.window {
			n--
			sum -= t
		}
	}
	return n == 0 && sum == 0
}

// move changes the time of n actions.
func (m *slots) move(from, to, n int64) {
	m.latest = max(m.latest, to)
	for i, t := range m.times {
		if t == from && n > 0 {
			m.times[i] = to
			n--
		}
	}
}

func (m *slots) String() string {
	return fmt.Sprint(slices.Sorted(slices.Values(m.times)), " latest ", m.latest)
}

func (m *slots) Clone() Model {
	c := *m
	c.times = slices.Clone(m.times)
	return &c
}

// The actions of the new window count.
func (m *slots) Deployed(window int64) Model {
	return &slots{names: m.names, window: window, times: m.times, latest: m.latest}
}
