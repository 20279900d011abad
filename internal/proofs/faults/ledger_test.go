package faults_test

import (
	"fmt"
	"math"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A word is one way for an answer and the table to disagree.
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
	given   map[string]bool          // the releases that gave back, by receipt
	ids     int64                    // how many ids the item remembers
	places  int64                    // how many places a reservoir gave; nobody gives them back
	freed   map[int]int64            // when each instance last gave something back
	alone   map[int]map[string]int64 // what each instance admitted without the table
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

// An entry is a check that is counted. At is its receipt; 0: nobody has one. Once it is
// renewed, earlier receipts of its id serve as well.
type entry struct {
	n, at, place int64
	renewed      bool
}

// has reports whether a receipt serves for e.
func (e entry) has(at int64) bool { return e.at == at || e.renewed }

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
	case ratelimit.Release, ratelimit.Reset:
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
	case c.op == ratelimit.Check && !known && (diff == c.n || c.partial && 0 < diff && diff < c.n):
		l.count(c, entry{n: diff})
	case c.op == ratelimit.Release && diff == -c.n:
		l.giveBack(c)
	case c.op == ratelimit.Reset && len(s.counts) == 0:
		l.reset(c)
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
	if !known || !e.has(c.at) || l.given[receipt] || len(l.limits) == 1 && l.limits[0].places {
		return
	}
	delete(l.counted, c.id)
	if e.n > c.n {
		l.counted["the rest of "+receipt] = entry{n: e.n - c.n}
	}
	l.given[receipt] = true // the item drops one id and keeps another
	l.freed[c.instance] = l.now
}

func (l *ledger) renewed(c *call) {
	e := l.counted[c.id]
	e.renewed = true
	l.counted[c.id] = e
}

func (l *ledger) reset(c *call) {
	clear(l.counted)
	clear(l.given)
	l.ids, l.places = 0, 0
	l.freed[c.instance] = l.now
}
