package giveback

import "fmt"

// most is the highest number of parts and of attempts.
const most = 3

// A part is the item of a user, a room or a tenant. It has one place: for the request, or
// for somebody else.
type part struct {
	counted bool // the request's id is there
	marked  bool // an attempt relies on it
	others  bool // somebody else has the place
	back    set  // the attempts whose give-back the item has met
}

// A set holds parts or attempts, by number.
type set uint8

func (s set) has(i int) bool { return s>>i&1 == 1 }

// An attempt is one decision about the request.
type attempt struct {
	phase  phase
	at     int // the part that is asked
	own    set // parts that its own write counted
	relied set // parts that it found and marked
	outage set // parts that gave no answer and were decided from memory
	unsure set // parts that got a write of this attempt and gave no answer to it
	back   set // parts whose give-backs are on their way
}

type phase uint8

const (
	asking     phase = iota // one part after the other
	marking                 // each part that it found
	recounting              // a part that refused the mark
	admitted
	refused
)

func (a *attempt) ended() bool { return a.phase >= admitted }

// A state is what the items, the attempts and the network hold.
type state struct {
	parts    [most]part
	attempts [most]attempt
	moves    int       // how often others may still come and go
	losses   int       // how many answers may still be lost
	counts   set       // copies of a check that are still on their way
	marks    set       // copies of a mark
	backs    [most]set // copies of the give-backs of each attempt

	released bool // the app has released the request
	excused  set  // attempts that began before that
}

// A rule is what the attempts do, with the mistakes that the model has to find.
type rule struct {
	name  string
	marks bool // who is admitted marks what it found

	blind  bool // a give-back ignores marks
	trusts bool // a part that another attempt has counted again is not marked again
	skips  bool // a refused mark does not count again
	claims bool // a repeat of an attempt's own write counts as its own
	all    bool // a refused attempt also gives back what it found
	dates  bool // who found a part has a receipt, too, and can be released

	userFirst bool // the first part is marked first
}

// A system is a rule with bounds.
type system struct {
	rule

	parts, attempts, moves, losses int
	release                        bool // the app releases the request once it is admitted
}

func (y system) begin() state {
	s := state{moves: y.moves, losses: y.losses}
	for i := 1; i < y.parts; i++ {
		s.parts[i].others = i == y.parts-1 // the last part is full
	}
	for i := y.attempts; i < most; i++ {
		s.attempts[i].phase = refused
	}
	return s
}

// next calls yield with each event that can come next, and the state after it.
func (y system) next(s state, yield func(event string, after state)) {
	for i := range y.parts {
		p := s.parts[i]
		if s.moves > 0 && (p.others || !p.counted) {
			t := s
			t.moves--
			t.parts[i].others = !p.others
			yield(fmt.Sprintf("others change in part %d", i+1), t)
		}
		y.arrive(s, i, yield)
	}
	for n := range y.attempts {
		if a := s.attempts[n]; !a.ended() {
			y.step(s, n, func(event string, t state) { yield(fmt.Sprintf("attempt %d, part %d: %s", n+1, a.at+1, event), t) })
		}
	}
	if y.release && !s.released {
		y.releases(s, yield)
	}
}

// arrive performs the copies and the give-backs that are on their way to a part.
func (y system) arrive(s state, i int, yield func(string, state)) {
	if s.counts.has(i) {
		t := s
		t.counts &^= 1 << i
		t.parts[i].take()
		yield(fmt.Sprintf("a late check arrives in part %d", i+1), t)
	}
	if s.marks.has(i) {
		t := s
		t.marks &^= 1 << i
		t.parts[i].mark()
		yield(fmt.Sprintf("a late mark arrives in part %d", i+1), t)
	}
	for n := range y.attempts {
		if s.attempts[n].back.has(i) {
			t := s
			t.attempts[n].back &^= 1 << i
			y.giveBack(&t.parts[i], n)
			yield(fmt.Sprintf("attempt %d, part %d: give-back", n+1, i+1), t)
			if s.losses > 0 {
				t.losses--
				t.backs[n] |= 1 << i
				yield(fmt.Sprintf("attempt %d, part %d: give-back, and a copy is on its way", n+1, i+1), t)
			}
		}
		if s.backs[n].has(i) {
			t := s
			t.backs[n] &^= 1 << i
			y.giveBack(&t.parts[i], n)
			yield(fmt.Sprintf("a late give-back of attempt %d arrives in part %d", n+1, i+1), t)
		}
	}
}

// take counts the request. It returns false if it does not fit.
func (p *part) take() bool {
	if p.counted || p.others {
		return p.counted
	}
	p.counted = true
	return true
}

// mark marks the request's id, if it is there.
func (p *part) mark() { p.marked = p.marked || p.counted }

// giveBack removes the request's id, if nobody relies on it. A copy changes nothing.
func (y system) giveBack(p *part, n int) {
	if p.counted && !p.back.has(n) && (!p.marked || y.blind) {
		p.counted, p.marked = false, false
		p.back |= 1 << n
	}
}

// releases lets the app release the request, if an attempt has a receipt: it was admitted and
// has counted each part itself. The release takes the mark of another attempt with it.
func (y system) releases(s state, yield func(string, state)) {
	t, released := s, false
	for n, a := range s.attempts[:y.attempts] {
		released = released || a.phase == admitted && (y.dates || a.own == 1<<y.parts-1)
		if a != (attempt{}) {
			t.excused |= 1 << n
		}
	}
	if !released {
		return
	}
	t.released = true
	for i := range t.parts {
		t.parts[i].counted, t.parts[i].marked = false, false
	}
	yield("the app releases the request", t)
}

// step lets attempt n send its next request.
func (y system) step(s state, n int, yield func(string, state)) {
	t := s
	a, i := &t.attempts[n], s.attempts[n].at
	p := &t.parts[i]
	var event string
	switch {
	case a.phase == marking && p.counted:
		event, p.marked = "mark", true
		a.relied |= 1 << i
		y.goOn(a)
	case a.phase == marking && y.skips:
		event = "mark refused"
		a.relied |= 1 << i
		y.goOn(a)
	case a.phase == marking:
		event, a.phase = "mark refused", recounting
	case p.counted && y.claims && a.unsure.has(i):
		event = "found, and taken for its own"
		a.own |= 1 << i
		y.goOn(a)
	case p.counted && a.phase == recounting && y.trusts:
		event = "found"
		a.relied |= 1 << i
		y.goOn(a)
	case p.counted && a.phase == recounting:
		event, a.phase = "found", marking
	case p.counted:
		event = "found"
		y.goOn(a)
	case p.take():
		event = "counted"
		a.own |= 1 << i
		y.goOn(a)
	default:
		event = "refused"
		y.refuse(a)
	}
	yield(event, t)
	if s.losses > 0 {
		y.lose(s, n, yield)
	}
}

// lose lets attempt n send its next request and get no answer. The request is performed
// now or later. The attempt sends it again, or it fails, or it decides from memory.
func (y system) lose(s state, n int, yield func(string, state)) {
	s.losses--
	i := s.attempts[n].at
	now, later := s, s
	if s.attempts[n].phase == marking {
		now.parts[i].mark()
		later.marks |= 1 << i
	} else {
		now.parts[i].take()
		later.counts |= 1 << i
	}
	for k, t := range []state{now, later} {
		when := []string{"performed", "late"}[k]
		t.attempts[n].unsure |= 1 << i
		yield("no answer, "+when+", sent again", t)
		failed, alone := t, t
		y.refuse(&failed.attempts[n])
		yield("no answer, "+when+", an error", failed)
		alone.attempts[n].outage |= 1 << i
		y.goOn(&alone.attempts[n])
		yield("no answer, "+when+", decided from memory", alone)
	}
}

// goOn goes on to the next part that an attempt asks or marks.
func (y system) goOn(a *attempt) {
	if a.phase == asking && a.at < y.parts-1 {
		a.at++
		return
	}
	a.phase = admitted
	if !y.marks {
		return
	}
	for k := range y.parts {
		i := y.parts - 1 - k
		if y.userFirst {
			i = k
		}
		if !(a.own | a.relied | a.outage).has(i) {
			a.phase, a.at = marking, i
			return
		}
	}
}

// refuse ends an attempt, which gives back what it has counted.
func (y system) refuse(a *attempt) {
	a.phase, a.back = refused, a.own
	if y.all {
		a.back = 1<<a.at - 1
	}
}
