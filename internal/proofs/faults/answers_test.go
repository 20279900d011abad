package faults_test

import "github.com/cric-talk/guards/internal/ratelimit"

// answer notes the answer to a call. Unsure: an attempt had an unknown outcome.
// For a second after something was given back, other instances may refuse from
// their memories.
func (l *ledger) answer(c *call, d ratelimit.Decision, unsure bool) {
	for who, freed := range l.freed {
		if d.Reason == ratelimit.Limited && d.Requests == 0 && who != c.instance && l.now-freed <= 1000 {
			return
		}
	}
	switch c.op {
	case ratelimit.Check:
		l.checked(c, d, unsure)
	case ratelimit.Status:
		room := l.room()
		if _, known := l.counted[c.id]; !known && (d.Reason == ratelimit.Limited) != (room < c.n && (!c.partial || room == 0)) {
			l.report(under, "the status is %s, and there is room for %d", d.Reason, room)
		}
	case ratelimit.Release:
		l.giveBack(c)
	case ratelimit.Renew:
		e, known := l.counted[c.id]
		serves := known && e.has(c.at) && e.n >= c.n
		if serves != (d.Reason == ratelimit.OK) || serves != (d.At != 0) || !serves && d.Reason != ratelimit.Expired {
			l.report(phantom, "a renewal is told %s with the receipt %d, and it is counted: %v", d.Reason, d.At, serves)
		}
		if serves {
			l.renewed(c)
		}
	case ratelimit.Reset:
		l.reset(c)
	default:
	}
	if c.op == ratelimit.Release && d.Reason != ratelimit.OK || c.op == ratelimit.Reset && d.Reason != ratelimit.OK {
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
	case d.At != l.now && (d.At != 0 || !unsure):
		l.report(phantom, "its receipt is %d", d.At)
	}
	l.count(c, entry{n: n, at: d.At})
}

// withoutTable notes what an instance decided from its memory. It admits each
// request once.
func (l *ledger) withoutTable(c *call, d ratelimit.Decision) {
	if _, known := l.counted[c.id]; known || c.op != ratelimit.Check || d.Granted == 0 {
		return
	}
	mine := l.alone[c.instance]
	if mine == nil {
		mine = map[string]int64{}
		l.alone[c.instance] = mine
	}
	mine[c.id] = d.Granted
	var sum int64
	for _, n := range mine {
		sum += n
	}
	for _, m := range l.limits {
		if sum > m.most {
			l.report(over, "the instance admitted %d without the table", sum)
		}
	}
}
