package simulate_test

import (
	"fmt"
	"math"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// plan fills a run with traffic: bursts, steady calls, calls around the end of a
// window, and silence in which items expire.
func (s *sim) plan(requests int) {
	t := s.of(s.activities[0].Limit)
	window := t.numbers.Rates[0].Window.Milliseconds()
	at := s.now
	for requests > 0 {
		n := min(requests, 5+s.random.IntN(25))
		requests -= n
		var over int64
		switch s.random.IntN(4) {
		case 0:
			over = s.upTo(3000)
		case 1:
			over = s.upTo(3 * t.numbers.Longest())
		case 2:
			at += window - at%window - min(window, 3000)
			over = 6000
		default:
			at += s.upTo(5*t.numbers.Longest()/2) + s.upTo(200_000)
			over = s.upTo(window)
			s.at(at, s.sweep)
		}
		s.scatter(n, at, over, s.arrive)
		s.scatter(s.random.IntN(3), at, over, s.disturb)
		at += over
	}
}

// disturb changes something that is not a request.
func (s *sim) disturb() {
	in := s.instances[s.random.IntN(len(s.instances))]
	switch s.random.IntN(5) {
	case 0, 1:
		s.operate()
		if s.odd {
			s.tryMisfits()
		}
	case 2:
		s.sweep()
	case 3:
		in.stepClock()
	default:
		until := s.now + s.upTo(40_000)
		for _, other := range s.instances {
			if other == in || s.chance(2) {
				other.downUntil = until
			}
		}
		s.line("outage until %.3f for some instances", float64(until-begin)/1000)
	}
}

// arrive lets a client send its first request.
func (s *sim) arrive() {
	s.ids++
	a := s.anActivity()
	r := ratelimit.Request{
		UserID: "u1", Activity: a.Name, Group: a.Group, Hold: a.Hold, Count: 1, ID: fmt.Sprint("r", s.ids), Alone: !s.chance(4),
	}
	switch {
	case s.chance(5):
		r.UserID = "u2"
	case s.odd && s.chance(10):
		r.UserID = spoiled
	}
	tier := ""
	if s.chance(4) {
		tier = premium
	}
	t := s.of(a.Limit)
	switch s.random.IntN(4) {
	case 0:
		r.Count = 1 + s.upTo(min(2, t.numbers.Most-1))
	case 1:
		r.Count = 1 + s.upTo(t.numbers.Most-1)
	default:
	}
	if !t.Queues() && s.chance(4) {
		r.Partial = true
		r.Count += s.upTo(3)
	}
	r.Fresh = s.chance(2) && !r.Partial
	if len(s.activities) > 1 && !r.Partial && s.chance(3) { // the same id in the other activity is another request
		other := r
		other.Activity, other.Count, other.Fresh = s.activities[0].Name, 1, false
		if r.Activity == other.Activity {
			other.Activity = s.activities[1].Name
		}
		s.at(s.now+s.upTo(20), func() { s.ask(s.any(), other, tier) })
	}
	switch in := s.any(); {
	case s.chance(14):
		in.send(ratelimit.Status, r, tier, math.MaxInt64, nil)
	case s.chance(60) && !t.Queues():
		r.Count, r.Partial = 1, false
		in.send(ratelimit.Reset, r, tier, math.MaxInt64, nil)
	default:
		s.ask(in, r, tier)
	}
}

func (s *sim) any() *instance { return s.instances[s.random.IntN(len(s.instances))] }

// ask sends a check. One client in 12 gives up before the answer, and asks again
// with the same id, perhaps elsewhere.
func (s *sim) ask(in *instance, r ratelimit.Request, tier string) {
	leaves := int64(math.MaxInt64)
	if s.chance(12) {
		leaves = s.now + 1 + s.upTo(300)
		if !r.Fresh && !r.Partial {
			s.at(leaves+s.upTo(5000), func() { s.ask(s.any(), r, tier) })
		}
	}
	in.send(ratelimit.Check, r, tier, leaves, func(o *op, d ratelimit.Decision, err error) { s.answered(o, r, tier, d, err) })
}

// answered does what a client does after an answer.
func (s *sim) answered(o *op, r ratelimit.Request, tier string, d ratelimit.Decision, err error) {
	in := o.in
	if s.chance(2) {
		in = s.any()
	}
	if !r.Fresh && !r.Partial && s.chance(5) { // a repeat, sometimes one that comes too late
		after := s.upTo(8000)
		if s.chance(4) {
			after = s.upTo(lateness(r))
		}
		s.at(s.now+after, func() { s.ask(in, r, tier) })
	}
	switch {
	case err != nil:
	case d.ReadyAt != 0 && s.chance(2):
		s.present(in, r, tier, d)
	case d.Wait > 0 && d.Reason == ratelimit.Limited && s.chance(3) && d.Wait.Milliseconds() < 400_000:
		early := int64(s.random.IntN(2))
		if r.Fresh || r.Partial { // such an id serves one decision
			r.ID += "'"
		}
		s.at(s.now+d.Wait.Milliseconds()-early, func() { s.ask(in, r, tier) })
	case d.At != 0 && !o.terms.Queues() && o.terms.HeldUntil(0) != 0 && s.chance(3):
		s.keep(in, r, tier, d)
	case d.At != 0 && !o.terms.Queues() && s.chance(3):
		s.giveBack(in, r, tier, d)
	}
}

// lateness returns how late a repeat or a release comes at most. Some come too late.
func lateness(r ratelimit.Request) int64 {
	if r.Hold {
		return 18 * 60_000
	}
	return 60_000
}

// present lets a client come back with its place: on time, early or late.
func (s *sim) present(in *instance, r ratelimit.Request, tier string, d ratelimit.Decision) {
	r.ReadyAt = d.ReadyAt
	at := s.now + d.Wait.Milliseconds() + s.upTo(30_000) - 5000
	s.at(at, func() { s.ask(in, r, tier) })
}

// giveBack lets a client release what it was granted, sometimes twice and
// sometimes only in part.
func (s *sim) giveBack(in *instance, r ratelimit.Request, tier string, d ratelimit.Decision) {
	back := r
	back.At, back.Count, back.Partial = d.At, d.Granted, false
	switch {
	case s.chance(6):
		back.Count = 1 + s.upTo(d.Granted-1)
	case s.odd && s.chance(5):
		back.Count = oddCounts[s.random.IntN(len(oddCounts))]
	}
	after := s.upTo(6000)
	if s.chance(5) || r.Hold && s.chance(2) {
		after = s.upTo(lateness(r))
	}
	s.at(s.now+after, func() { in.send(ratelimit.Release, back, tier, math.MaxInt64, nil) })
	if s.chance(4) {
		copied := s.upTo(3000)
		if r.Hold {
			copied = s.upTo(lateness(r) / 2)
		}
		s.at(s.now+after+copied, func() { s.any().send(ratelimit.Release, back, tier, math.MaxInt64, nil) })
	}
	if s.chance(4) && !r.Fresh && !r.Partial {
		s.at(s.now+after+s.upTo(6000), func() { s.ask(s.any(), r, tier) })
	}
}
