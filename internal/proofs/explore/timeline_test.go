package explore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A timeline tells what happens on the way to a violation, as the simulation's does. Each line
// begins with the seconds from the edge, on the clock of instance A.
type timeline struct {
	*explorer

	now   world
	lines []string
}

// timeline makes the moves again, and returns what happens.
func (x *explorer) timeline(moves []move) []string {
	l := &timeline{explorer: x}
	x.watch = l
	defer func() { x.watch = nil }()
	l.now, _ = x.begin()
	for _, m := range moves {
		l.begins(m)
		after := l.now // what is told until the move is over began before it
		err := x.step(&after, m)
		if l.now = after; err != nil {
			l.say("VIOLATION: %v", err)
		}
		x.forget(&l.now)
	}
	return l.lines
}

func (l *timeline) say(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf("%9.3f  ", float64(l.instants[l.now.now])/1000)+fmt.Sprintf(format, args...))
}

// begins adds what a move is, unless performed or ended tells it.
func (l *timeline) begins(m move) {
	s, by := name(int(m.slot)), 'A'+rune(m.by)
	p := l.now.procs[m.slot%slots]
	switch m.what {
	case starts:
		user, inRoom := l.terms(int(m.slot), l.now.limit[m.by])
		limit := user.String()
		if inRoom != nil {
			limit += ", and of the room " + inRoom.String()
		}
		l.say("%s: %s, by instance %c (%d ms ahead), limit %s", s, l.requests[m.slot], by, int64(m.by)*l.skew.Milliseconds(), limit)
	case answers, performs:
		if k := l.asks[p.told]; k.what == read {
			l.say("the store shows %s the item of %s: %s", s, l.asked(p), describe(l.items.at(l.item(l.now.store, k.item))))
		}
	case delivers:
		l.say("the answer reaches %s", s)
	case loses:
		l.say("the answer to %s is lost", s)
	case vanishes:
		l.say("the request of %s for the item of %s gets no answer, and is on its way", s, l.asked(p))
	case throttles:
		l.say("the request of %s for the item of %s is throttled", s, l.asked(p))
	case proceeds:
		l.say("%s looks at the clock", s)
	case arrives:
		l.say("a request of %s that was on its way arrives", name(int(l.messages.at(l.now.late[m.slot]).slot)))
	case cleans:
		l.say("cleanup deletes the item of %s", l.owner(l.keys[m.slot]))
	case follows:
		l.say("instance %c follows the next live limit, %s", by, follow(l.policies, l.now.limit[m.by]+1))
	case crashes:
		l.say("instance %c dies, and the request of %s is on its way", 'A'+rune(p.by), s)
	case ticks:
	}
}

// performed adds what the store did with an update.
func (l *timeline) performed(s int, w ratelimit.Write, before ratelimit.Item, a answer) {
	what := "update"
	switch verb := l.requests[s].verb; {
	case w.RelyOn.Set != "":
		what = "mark"
	case w.GivesBack, verb == release, verb == unlock:
		what = "give-back"
	}
	did, why := "performs", ""
	if _, counted := before.Find(w); counted {
		did, why = "refuses", ", because the id is there"
	} else if !a.done {
		did, why = "refuses", ", because its condition does not hold"
	}
	l.say("the store %s the %s of %s%s: the item of %s has %s", did, what, name(s), why, l.owner(w.Key), describe(l.items.at(a.item)))
}

// owner returns whose item has the key k.
func (l *timeline) owner(k ratelimit.Key) string {
	if k.UserID == room {
		return "the room"
	}
	return k.UserID
}

// asked returns whose item the request of a slot is for.
func (l *timeline) asked(p proc) string {
	k := l.asks[p.told]
	if k.what == update {
		return l.owner(l.writes.at(k.write).Key)
	}
	return l.owner(l.keys[k.item])
}

// deleted adds that a reset was performed.
func (l *timeline) deleted(s int) { l.say("the store deletes the item for %s", name(s)) }

// ended adds the answer to a caller.
func (l *timeline) ended(s int, d result) {
	switch {
	case d.failed:
		l.say("%s: an error, without attempts left", name(s))
	case d.outage:
		l.say("%s: decided from memory: allowed %v, granted %d, place %s", name(s), d.Allowed, d.Granted, moment(d.ReadyAt))
	default:
		l.say("%s: %s, granted %d, receipt %s, place %s", name(s), d.Reason, d.Granted, moment(d.At), moment(d.ReadyAt))
	}
}

// describe writes an item as a text, such as "tat 1700000406999, i26 (1)". The number of elements
// of each set is behind its name.
func describe(i ratelimit.Item) string {
	var parts []string
	for _, a := range i.State {
		parts = append(parts, fmt.Sprint(a.Name, " ", a.Value))
	}
	for _, set := range i.IDs {
		parts = append(parts, fmt.Sprintf("%s (%d)", set.Name, len(set.Elements)))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// A timeline is printed only with a violation, so this makes one without.
func TestATimelineTellsWhatHappens(t *testing.T) {
	y := &system{
		policies: []*rules{rulesOf("2/10s")}, room: []*rules{rulesOf("1/10s")}, skew: time.Second,
		instants: []int64{-1, 0}, requests: []request{{verb: check, count: 1}, {verb: check, count: 1}}, attempts: 2,
	}
	moves := []move{
		{what: starts}, {what: answers}, {what: answers}, {what: starts, slot: 1, by: 1}, {what: answers, slot: 1}, {what: vanishes, slot: 1},
		{what: throttles, slot: 1},
	}
	got := strings.Join(newExplorer(y).timeline(moves), "\n")
	for _, want := range []string{
		"   -0.001  r0: check 1, by instance A (0 ms ahead), limit 2/10s, and of the room 1/10s\n",
		"  the store performs the update of r0: the item of the room has activityCount 1, ids (1)\n",
		"  r0: ok, granted 1, receipt -1ms, place none\n",
		"  r1: check 1, by instance B (1000 ms ahead), ",
		"  the request of r1 for the item of the room gets no answer, and is on its way\n",
		"  the request of r1 for the item of the room is throttled",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the timeline has no line with %q:\n%s", want, got)
		}
	}
}
