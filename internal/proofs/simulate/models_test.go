package simulate_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A model says what one limit promises. The models are written from
// docs/policies.md and share no code with package policy. They get actions in the
// order in which the store performed them.
//
// Clocks differ, so an action can be over for one clock and count for another.
// Strict figures count everything that counts for the clock at hand. The others
// leave out what is over for any clock that has counted since. With one clock
// both are the same.
type model interface {
	// at returns when an action that comes at now counts. It is later than now
	// if a clock ahead has begun something that has not begun at now.
	at(now int64) int64

	used(now int64, r policy.Rate, strict bool) int64
	fits(now, n int64, r policy.Rate, strict bool) bool
	resets(now int64, r policy.Rate, strict bool) int64

	count(now, n int64, r policy.Rate)

	// holds reports whether n actions of the moment at still count at now, so
	// that they can be given back. Back gives them back.
	holds(now, at, n int64, strict bool) bool
	back(now, at, n int64)

	// counted returns how many actions a write of the moment at has counted. It
	// compares the item before and after the write.
	counted(at int64, r policy.Rate, before, after policy.State) int64

	// same reports whether the item holds what the model holds.
	same(s policy.State) bool

	clone() model

	// deployed returns the model of the same limit with another window. It keeps
	// what still counts of the actions so far.
	deployed(window int64) model
}

// models makes the model of each kind. Prefix stands before each attribute, such
// as "minute_"; it is empty for a limit that has the item for itself.
var models = map[string]func(prefix string, window int64) model{
	"fixed": func(prefix string, window int64) model {
		return &fixedModel{prefix: prefix, windows: windows{length: window}, counts: map[int64]int64{}}
	},
	"log": func(prefix string, window int64) model {
		return &logModel{names: slotNames(prefix), window: window}
	},
	"sliding": func(prefix string, window int64) model {
		return &slidingModel{prefix: prefix, window: window, counts: map[int64]int64{}}
	},
	"bucket":    func(prefix string, _ int64) model { return &bucketModel{prefix: prefix} },
	"reservoir": func(prefix string, window int64) model { return &reservoirModel{prefix: prefix, window: window} },
}

// newModel returns the model of a limit.
func newModel(r policy.Rate) (model, error) {
	model, ok := models[r.Kind]
	if !ok {
		return nil, fmt.Errorf("the simulation has no model of the kind %q, so it cannot judge it: write one in internal/proofs/simulate from what docs/policies.md promises", r.Kind)
	}
	made := model(prefix(r), r.Window.Milliseconds())
	if m, ok := made.(*fixedModel); ok {
		m.windows = windowsOf(r)
	}
	return made, nil
}

// windows are equally long, or the days, weeks or months of a zone.
type windows struct {
	length int64
	unit   string
	zone   *time.Location
}

func windowsOf(r policy.Rate) windows {
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		panic(err)
	}
	return windows{r.Window.Milliseconds(), r.Unit, zone}
}

// key returns the number of the window at a time. Begins returns when it begins. The
// zones of the examples change their clocks on no first day of a month or a week, and on
// no day of a run.
func (w windows) key(at int64) int64 {
	if w.unit == "" {
		return at / w.length
	}
	local := time.UnixMilli(at).In(w.zone)
	days := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86_400
	switch w.unit {
	case "day":
		return days
	case "week": // the first Monday was 1970-01-05
		return (days-4+7_000)/7 - 999
	default:
		return int64(local.Year()-1970)*12 + int64(local.Month()-1)
	}
}

func (w windows) begins(key int64) int64 {
	date := func(month time.Month, day int) int64 {
		return time.Date(1970, month, day, 0, 0, 0, 0, w.zone).UnixMilli()
	}
	switch w.unit {
	case "day":
		return date(1, 1+int(key))
	case "week":
		return date(1, 5+7*int(key-1))
	case "month":
		return date(1+time.Month(key), 1)
	}
	return key * w.length
}

func prefix(r policy.Rate) string {
	if r.Name == "" {
		return ""
	}
	return r.Name + "_"
}

// A fixedModel counts the actions of each window of the clock. Beside other
// limits it counts in one item, so no window counts any more once a later one
// has begun.
type fixedModel struct {
	prefix  string
	windows windows
	counts  map[int64]int64
	begun   int64 // the latest window in which an action was counted
	from    int64 // when that window began; another window before a deploy may have begun within it
	shown   int64 // 0: all windows; else later windows read as empty
}

func (m *fixedModel) at(now int64) int64 { return now }

// key returns the window that counts at now.
func (m *fixedModel) key(now int64) int64 {
	if m.prefix != "" {
		return max(m.windows.key(now), m.begun)
	}
	return m.windows.key(now)
}

func (m *fixedModel) used(now int64, _ policy.Rate, _ bool) int64 {
	if m.shown > 0 && m.key(now) > m.shown {
		return 0
	}
	return m.counts[m.key(now)]
}

func (m *fixedModel) fits(now, n int64, r policy.Rate, strict bool) bool {
	return m.key(now) == m.windows.key(now) && m.used(now, r, strict)+n <= r.Limit
}

func (m *fixedModel) resets(now int64, _ policy.Rate, _ bool) int64 {
	return m.windows.begins(m.key(now) + 1)
}

func (m *fixedModel) count(now, n int64, _ policy.Rate) {
	k := m.windows.key(now)
	if m.counts[k] += n; k > m.begun {
		m.begun, m.from = k, m.windows.begins(k)
	}
}

func (m *fixedModel) holds(now, at, n int64, _ bool) bool {
	k := m.windows.key(at)
	return m.windows.key(now) == k && m.key(now) == k && m.counts[k] >= n && (m.prefix == "" || at >= m.from)
}

func (m *fixedModel) back(_, at, n int64) { m.counts[m.windows.key(at)] -= n }

func (m *fixedModel) counted(_ int64, _ policy.Rate, before, after policy.State) int64 {
	if m.prefix == "" {
		return after["activityCount"] - before["activityCount"]
	}
	was, is := before[m.prefix+"s"], after[m.prefix+"s"]
	if was/1_000_000 != is/1_000_000 {
		return is % 1_000_000
	}
	return is - was
}

func (m *fixedModel) same(s policy.State) bool {
	if m.prefix == "" {
		return true // the item does not show its window; counted compares each change
	}
	return s[m.prefix+"s"] == m.from*1_000_000+m.counts[m.begun]
}

// A logModel keeps the time of each action. An action counts for one window.
type logModel struct {
	names  []string // of the attributes
	window int64
	times  []int64
	latest int64 // the latest time at which an action was counted
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

func (m *logModel) at(now int64) int64 { return now }

// over returns the latest time that does not count any more.
func (m *logModel) over(now int64, strict bool) int64 {
	if !strict {
		now = max(now, m.latest)
	}
	return now - m.window
}

func (m *logModel) used(now int64, _ policy.Rate, strict bool) (n int64) {
	over := m.over(now, strict)
	for _, t := range m.times {
		if t > over {
			n++
		}
	}
	return n
}

func (m *logModel) fits(now, n int64, r policy.Rate, strict bool) bool {
	return m.used(now, r, strict)+n <= r.Limit
}

func (m *logModel) resets(now int64, _ policy.Rate, strict bool) int64 {
	if len(m.times) == 0 {
		return now
	}
	if newest := slices.Max(m.times); newest > m.over(now, strict) {
		return newest + m.window
	}
	return now
}

func (m *logModel) count(now, n int64, _ policy.Rate) {
	m.latest = max(m.latest, now)
	for range n {
		m.times = append(m.times, now)
	}
	const behind = 300_000 // no clock here is further behind, updates under way included
	m.times = slices.DeleteFunc(m.times, func(t int64) bool { return t < m.latest-m.window-behind })
}

func (m *logModel) holds(now, at, n int64, strict bool) bool {
	for _, t := range m.times {
		if t == at {
			n--
		}
	}
	return at > m.over(now, strict) && n <= 0
}

func (m *logModel) back(_, at, n int64) {
	m.times = slices.DeleteFunc(m.times, func(t int64) bool {
		if t != at || n == 0 {
			return false
		}
		n--
		return true
	})
}

func (m *logModel) counted(at int64, _ policy.Rate, before, after policy.State) (n int64) {
	for _, name := range m.names {
		if t, ok := after[name]; ok && t+year2020 == at {
			n++
		}
		if t, ok := before[name]; ok && t+year2020 == at {
			n--
		}
	}
	return n
}

func (m *logModel) same(s policy.State) bool {
	var n, sum int64
	for _, name := range m.names {
		if t, ok := s[name]; ok && t+year2020 > m.latest-m.window {
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
