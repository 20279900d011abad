package simulate_test

import (
	"fmt"
	"math"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A call is what a client asks for: a request, its tier, and the others that it is about.
type call struct {
	ratelimit.Request

	tier     string
	subjects map[string]string // their ids, by the names that the activity has for them
	numbers  map[string]int64  // of limits with a max, by the names in the answer; "" is the user's only limit
}

// plan fills a run with traffic: bursts, steady calls, calls around the end of a
// window, and silence while items expire. Bursts are longer and more frequent where
// keys have to become hot.
func (s *sim) plan(clients int) {
	most, patterns := 25, 4
	if s.prepaid() {
		most, patterns = 80, 8
	}
	at := s.now
	for clients > 0 {
		n := min(clients, 5+s.random.IntN(most))
		clients -= n
		r := s.anyRate()
		window := r.Window.Milliseconds()
		longest := max(window, oracle.Interval(r)*r.Burst, r.MaxLock.Milliseconds())
		var over int64
		switch s.random.IntN(patterns) {
		case 1:
			over = s.upTo(3 * longest)
		case 2:
			w := oracle.WindowsOf(r)
			at = max(at, w.Begins(w.Key(at)+1)-min(window, 3000))
			over = 6000
		case 3:
			at += s.upTo(5*longest/2) + s.upTo(200_000)
			over = s.upTo(window)
			s.at(at, s.sweep)
		default:
			at += s.upTo(12_000)
			over = 200 + s.upTo(5000)
		}
		s.scatter(n, at, over, s.arrive)
		s.scatter(s.random.IntN(3), at, over, s.disturb)
		at += over
	}
}

// anyRate returns the numbers of one of the limits.
func (s *sim) anyRate() policy.Rate {
	parts := s.anActivity().Parts()
	rates := s.of(parts[s.random.IntN(len(parts))].Limit).numbers.Rates
	return rates[s.random.IntN(len(rates))]
}

// disturb changes something that is not a request.
func (s *sim) disturb() {
	in := s.any()
	switch s.random.IntN(11) {
	case 0, 1:
		s.operate()
		if s.odd {
			s.tryMisfits()
		}
	case 2:
		s.sweep()
	case 3:
		in.stepClock()
	case 4:
		s.kill()
	case 5:
		in.freeze()
	case 6:
		s.erase()
	case 7:
		s.slowDown()
	case 8:
		s.breakKey()
	case 9:
		s.block()
	default:
		s.had("", "outage")
		until := s.now + s.upTo(40_000)
		for _, other := range s.instances {
			if other == in || s.chance(2) {
				other.downUntil = until
			}
		}
		s.line("outage until %.3f for some instances", float64(until-begin)/1000)
	}
}

// kill ends an instance with everything that it does, and starts another one. Clients
// without an answer ask again.
func (s *sim) kill() {
	in := s.any()
	in.dead = true
	s.instances[in.number] = s.newInstance(in.number)
	s.stats["instances killed"]++
	s.had("", "killed instance")
	s.line("instance %d is killed", in.number)
	for _, o := range s.begun {
		if o.in == in && !o.ended && o.kind == ratelimit.Check && !o.request.Partial && !o.request.Fresh {
			s.at(s.now+s.upTo(5000), func() { s.ask(s.any(), o.call) })
		}
	}
}

// arrive lets a client send its first request.
func (s *sim) arrive() {
	s.ids++
	a := s.anActivity()
	c := call{Request: ratelimit.Request{
		UserID: s.aUser(), Activity: a.Name, Group: a.Group, Hold: a.Hold, Count: 1, ID: fmt.Sprint("r", s.ids), Fallback: !s.chance(4),
	}}
	if s.chance(4) {
		c.tier = premium
	}
	t, queues := s.of(a.Limit), a.Limit.Queues()
	c.subjects = s.drawSubjects(a)
	c.numbers = s.drawNumbers(a)
	most := t.numbers.Most
	if most = max(most, s.mostOf(c, a)); s.prepaid() {
		most = min(most, 9)
	}
	switch s.random.IntN(4) {
	case 0:
		c.Count = 1 + s.upTo(min(2, most-1))
	case 1:
		c.Count = 1 + s.upTo(most-1)
	default:
	}
	if !queues && c.subjects == nil && s.chance(4) {
		c.Partial = true
		c.Count += s.upTo(3)
	}
	c.Fresh = s.chance(2) && !c.Partial
	if len(s.activities) > 1 && !c.Partial && c.subjects == nil && s.chance(3) { // the same id in the other activity is another request
		other := c
		other.Activity, other.Count, other.Fresh, other.numbers = s.activities[0].Name, 1, false, nil
		if c.Activity == other.Activity {
			other.Activity = s.activities[1].Name
		}
		if b := s.named(other.Activity); len(b.Subjects) == 0 {
			other.Group, other.Hold = b.Group, b.Hold
			s.at(s.now+s.upTo(20)*s.upTo(1), func() { s.ask(s.any(), other) })
		}
	}
	switch in := s.any(); {
	case s.chance(14):
		in.send(ratelimit.Status, c, math.MaxInt64, nil)
	case len(lockouts(a.Limit)) > 0 && s.chance(20):
		s.sendClear(in, c)
	case s.chance(60) && !queues:
		c.Count, c.Partial, c.subjects, c.numbers = 1, false, nil, nil
		in.send(ratelimit.Reset, c, math.MaxInt64, nil)
	default:
		if c.subjects != nil && !c.Fresh && (s.chance(3) || s.breaks(c.UserID)) { // it is sent twice, side by side
			s.stats[twice]++
			twin := in
			if s.chance(2) {
				twin = s.any()
			}
			s.at(s.now+s.soon(1000), func() { s.ask(twin, c) })
		}
		s.ask(in, c)
	}
}

// drawSubjects draws the other subjects that a check names. Nil: none.
func (s *sim) drawSubjects(a limits.Activity) (ids map[string]string) {
	for _, sub := range a.Subjects {
		if !sub.Optional || !s.chance(3) {
			if ids == nil {
				ids = map[string]string{}
			}
			ids[sub.Name] = fmt.Sprint(min(s.random.IntN(2), 1-len(ids)))
		}
	}
	return ids
}

// aUser returns one of a few users. With subjects they are more, so that they meet there.
func (s *sim) aUser() string {
	switch {
	case s.breaks(s.broken.user) && s.subjects() && s.chance(2):
		return s.broken.user
	case s.subjects() && s.chance(2):
		return fmt.Sprint("v", s.random.IntN(6))
	case s.chance(5):
		return "u2"
	case s.odd && !s.subjects() && s.chance(10):
		return spoiled
	}
	return "u1"
}

func (s *sim) any() *instance { return s.instances[s.random.IntN(len(s.instances))] }

// ask sends a check. One client in 12 gives up before the answer, and asks again
// with the same id, perhaps elsewhere.
func (s *sim) ask(in *instance, c call) {
	leaves := int64(math.MaxInt64)
	if s.chance(12) {
		leaves = s.now + 1 + s.upTo(300)
		if !c.Fresh && !c.Partial {
			s.at(leaves+s.soon(5000), func() { s.ask(s.any(), c) })
		}
	}
	in.send(ratelimit.Check, c, leaves, func(o *op, d ratelimit.Decision, err error) { s.answered(o, c, d, err) })
}

// answered does what a client does after an answer.
func (s *sim) answered(o *op, c call, d ratelimit.Decision, err error) {
	in := o.in
	if s.chance(2) {
		in = s.any()
	}
	often := 5
	if o.terms.Queues() { // a queue delivers its jobs again
		often = 2
	}
	if !c.Fresh && !c.Partial && s.chance(often) { // a repeat, sometimes one that comes too late
		after := s.soon(8000)
		if s.chance(4) {
			after = s.upTo(lateness(c))
		}
		again := s.withOtherNumbers(c)
		if s.chance(6) { // by mistake, in another room
			again.subjects = s.drawSubjects(s.named(c.Activity))
		}
		s.at(s.now+after, func() {
			if s.chance(8) {
				in.send(ratelimit.Status, again, math.MaxInt64, nil)
				return
			}
			s.ask(in, again)
		})
	}
	switch {
	case err != nil:
	case d.ReadyAt != 0 && s.chance(2):
		s.present(in, c, d)
	case d.Wait > 0 && d.Reason == ratelimit.Limited && s.chance(3) && d.Wait.Milliseconds() < 400_000:
		early := int64(s.random.IntN(2))
		c = s.withOtherNumbers(c)
		if c.Fresh || c.Partial { // such an id serves one decision
			c.ID += "'"
		}
		s.at(s.now+d.Wait.Milliseconds()-early, func() { s.ask(in, c) })
	case d.At != 0 && !o.terms.Queues() && o.holdsSlots() && s.chance(3):
		s.keep(in, c, d)
	case d.At != 0 && !o.terms.Queues() && s.chance(3):
		s.giveBack(in, c, d)
	}
}

// lateness returns how late a repeat or a release comes at most. Some come too late.
func lateness(c call) int64 {
	if c.Hold {
		return 18 * 60_000
	}
	return 60_000
}

// present lets a client come back with its place: on time, early or late.
func (s *sim) present(in *instance, c call, d ratelimit.Decision) {
	c.ReadyAt = d.ReadyAt
	at := s.now + d.Wait.Milliseconds() + s.upTo(30_000) - 5000
	s.at(at, func() { s.ask(in, c) })
}

// wrongReceipt returns a time near a receipt, or of another set of ids.
func (s *sim) wrongReceipt(at int64) int64 {
	by := []int64{1, 40, 3000, 7000, 14_000, 300_000}[s.random.IntN(6)]
	if s.chance(2) {
		by = -by
	}
	s.stats["receipts that no check has"]++
	return at + by
}

// giveBack lets a client release what it was granted, sometimes twice and
// sometimes only in part.
func (s *sim) giveBack(in *instance, c call, d ratelimit.Decision) {
	back := s.withOtherNumbers(c)
	back.At, back.Count, back.Partial = d.At, d.Granted, false
	switch {
	case s.chance(6):
		back.Count = 1 + s.upTo(d.Granted-1)
	case s.odd && s.chance(5):
		back.Count = oddCounts[s.random.IntN(len(oddCounts))]
	case s.chance(10):
		back.At = s.wrongReceipt(back.At)
	}
	if len(lockouts(s.named(c.Activity).Limit)) > 0 {
		back.Clear = s.chance(3)
	}
	after := s.upTo(6000)
	if s.chance(5) || c.Hold && s.chance(2) {
		after = s.upTo(lateness(c))
	}
	s.at(s.now+after, func() { in.send(ratelimit.Release, back, math.MaxInt64, nil) })
	if s.chance(4) {
		copied := s.upTo(3000)
		if c.Hold {
			copied = s.upTo(lateness(c) / 2)
		}
		s.at(s.now+after+copied, func() { s.any().send(ratelimit.Release, back, math.MaxInt64, nil) })
	}
	if s.chance(4) && !c.Fresh && !c.Partial {
		s.at(s.now+after+s.upTo(6000), func() { s.ask(s.any(), c) })
	}
}
