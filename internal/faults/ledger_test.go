package faults_test

import (
	"fmt"
	"math"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A word is one way in which an answer and the table can disagree.
type word string

// The words. None of them may ever occur.
const (
	// phantom: an answer says that something happened, and the item does not
	// show it. An action is said to be counted, or to be given back, but it is
	// not.
	phantom word = "phantom"

	// lost: the item shows more than the answers say. An action is counted
	// twice, or counted although the answer says that it was refused, or that
	// the table never got it.
	lost word = "lost"

	// over: more actions are admitted than the limit allows.
	over word = "over"

	// under: an action is refused although there is room, or more is given back
	// than was asked for.
	under word = "under"
)

var words = []word{phantom, lost, over, under}

// A ledger keeps the checks that the item counts, by what the answers say. It
// shares no code with the policies. Nothing expires while it is kept.
type ledger struct {
	limits  []limit
	now     int64
	counted map[string]entry
	given   map[string]bool // the releases that gave back, by receipt
	ids     int64           // how many ids the item remembers
	places  int64           // how many places a reservoir gave; nobody gives them back
	freed   int64           // when something was last given back
	alone   map[int]int64   // what each instance admitted without the table
	found   map[word][]string
}

// A limit is the most actions that one limit counts. A reservoir also has places
// in later windows.
type limit struct {
	most   int64
	places bool
	each   int64 // places in one window
	window int64 // milliseconds
}

// An entry is a check that is counted. At is its receipt; 0: nobody has one.
type entry struct{ n, at, place int64 }

// stored is what the item shows.
type stored struct {
	counts []int64 // actions, by each limit
	ids    int64   // how many ids it remembers
}

func (l *ledger) report(w word, format string, args ...any) {
	l.found[w] = append(l.found[w], fmt.Sprintf(format, args...))
}

// total returns how many actions the answers add up to, as a limit counts them.
func (l *ledger) total(m limit) (n int64) {
	if m.places {
		return l.places
	}
	for _, e := range l.counted {
		n += e.n
	}
	return n
}

// room returns how many more actions fit.
func (l *ledger) room() int64 {
	room := int64(math.MaxInt64)
	for _, m := range l.limits {
		room = min(room, m.most-l.total(m))
	}
	return room
}

// compare requires that the item shows what the ledger has.
func (l *ledger) compare(s stored, c *call) {
	fewer, more := phantom, lost
	switch c.op {
	case release, reset:
		fewer, more = under, phantom
	default:
	}
	for i, m := range l.limits {
		total, got := l.total(m), int64(0)
		if len(s.counts) > 0 {
			got = s.counts[i]
		}
		switch {
		case got < total:
			l.report(fewer, "the item counts %v, and the answers add up to %d", s.counts, total)
		case got > total:
			l.report(more, "the item counts %v, and the answers add up to %d", s.counts, total)
		}
	}
	switch {
	case l.room() < 0:
		l.report(over, "the answers add up to %d more than the limit", -l.room())
	case s.ids < l.ids:
		l.report(phantom, "the item remembers %d requests, want %d, so a repeat would count again", s.ids, l.ids)
	case s.ids > l.ids:
		l.report(lost, "the item remembers %d requests, want %d", s.ids, l.ids)
	}
}

// resolve is for a call without an answer from the table. The item shows
// whether the table performed it.
func (l *ledger) resolve(c *call, s stored) {
	_, known := l.counted[c.id]
	var diff int64
	for i, m := range l.limits {
		if len(s.counts) > 0 && (diff == 0 || !m.places) {
			diff = s.counts[i] - l.total(m)
		}
	}
	switch {
	case c.op == check && !known && (diff == c.n || c.partial && 0 < diff && diff < c.n):
		l.count(c, entry{n: diff})
	case c.op == release && diff == -c.n:
		l.giveBack(c)
	case c.op == reset && len(s.counts) == 0:
		l.reset()
	}
}

func (l *ledger) count(c *call, e entry) {
	for _, m := range l.limits {
		if m.places {
			e.place = (l.now/m.window + l.places/m.each) * m.window
			l.places++
		}
	}
	l.counted[c.id] = e
	l.ids++
}

// giveBack performs a release, if its check is counted and not given back yet.
// If only a part is given back, the rest stays forever.
func (l *ledger) giveBack(c *call) {
	e, known := l.counted[c.id]
	receipt := fmt.Sprint(c.id, " ", c.at)
	if !known || e.at != c.at || l.given[receipt] || len(l.limits) == 1 && l.limits[0].places {
		return
	}
	delete(l.counted, c.id)
	if e.n > c.n {
		l.counted["the rest of "+receipt] = entry{n: e.n - c.n}
	}
	l.given[receipt] = true // the item drops one id and keeps another
	l.freed = l.now
}

func (l *ledger) reset() {
	clear(l.counted)
	clear(l.given)
	l.ids, l.places, l.freed = 0, 0, l.now
}

// answer notes the answer to a call. Unsure: an attempt had an unknown outcome.
// For a second after something was given back, an instance may refuse from its
// memory.
func (l *ledger) answer(c *call, d ratelimit.Decision, unsure bool) {
	if d.Reason == ratelimit.Limited && d.Requests == 0 && l.now-l.freed <= 1000 {
		return
	}
	switch c.op {
	case check:
		l.checked(c, d, unsure)
	case status:
		room := l.room()
		if _, known := l.counted[c.id]; !known && (d.Reason == ratelimit.Limited) != (room < c.n && (!c.partial || room == 0)) {
			l.report(under, "the status is %s, and there is room for %d", d.Reason, room)
		}
	case release:
		l.giveBack(c)
	case reset:
		l.reset()
	}
	if c.op == release && d.Reason != ratelimit.OK || c.op == reset && d.Reason != ratelimit.OK {
		l.report(phantom, "the reason is %s", d.Reason)
	}
}

// checked compares the table's answer to a check with the ledger, and counts
// what it admits.
func (l *ledger) checked(c *call, d ratelimit.Decision, unsure bool) {
	e, known := l.counted[c.id]
	room := l.room()
	switch {
	case d.Reason == ratelimit.Limited && known:
		l.report(phantom, "it is counted, and its repeat is refused")
	case d.Reason == ratelimit.Limited:
		if room >= c.n || c.partial && room > 0 {
			l.report(under, "it is refused, and there is room for %d", room)
		}
		return
	case d.Reason == ratelimit.Duplicate && (!known || unsure && !c.timed):
		l.report(phantom, "it is a duplicate; counted before: %v, an attempt was lost: %v", known, unsure)
	case d.Reason == ratelimit.OK && known && !unsure:
		l.report(lost, "it is counted again")
	case known && d.At != 0 && d.At != e.at:
		l.report(phantom, "its receipt is %d, and it is counted at %d", d.At, e.at)
	case !known:
		l.admitted(c, d, unsure, room)
	}
	if place := l.counted[c.id].place; place > l.now && place != d.ReadyAt || place <= l.now && d.ReadyAt != 0 {
		l.report(phantom, "its place is %d, and it has %d", d.ReadyAt, place)
	}
}

// admitted counts what the answer d admits.
func (l *ledger) admitted(c *call, d ratelimit.Decision, unsure bool, room int64) {
	n := d.Granted
	if d.Reason == ratelimit.Delayed {
		n = 1
	}
	switch {
	case d.Reason != ratelimit.OK && d.Reason != ratelimit.Delayed:
		l.report(phantom, "the reason is %s", d.Reason)
	case n > room:
		l.report(over, "it is granted %d, and there is room for %d", n, room)
	case n < min(c.n, room):
		l.report(under, "it is granted %d, and there is room for %d", n, room)
	case n != c.n && !c.partial:
		l.report(phantom, "it is granted %d of %d", n, c.n)
	case d.At != l.now && !(unsure && d.At == 0):
		l.report(phantom, "its receipt is %d", d.At)
	}
	l.count(c, entry{n: n, at: d.At})
}

// withoutTable notes what an instance decided from its memory.
func (l *ledger) withoutTable(c *call, d ratelimit.Decision) {
	if c.op != check || d.Granted == 0 {
		return
	}
	if l.alone[c.instance] += d.Granted; l.alone[c.instance] > l.limits[0].most {
		l.report(over, "the instance admitted %d without the table", l.alone[c.instance])
	}
}
