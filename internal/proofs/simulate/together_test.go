package simulate_test

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// together are runs in which a decision counts in several items: that of a user, that
// of a room and sometimes that of a tenant. A text has their limits in this order.
var together = subject{name: "user and room", texts: []string{
	"10/1m & 30/1m", "10/1m & 30/1m", "10/1m & 30/1m & 50/1m", "10/1m & 120/1m & 40/2m", "10/1m & log 30/1m",
	"log 8/30s & 30/1m & 200/1h", "bucket 10/1m & 30/1m", "a: 10/1m, b: log 8/20s & sliding 30/1m",
	"10/1m & a: 30/1m, b: bucket 30/30s", "sliding 10/1m & bucket 30/1m & log 40/1m",
	"60/1m & 150/1m prepaid", "60/1m & bucket 200/1m prepaid & 170/1m", "60/1m & sliding 150/1m prepaid & 160/2m prepaid",
}}

// others are the subjects beside the user.
var others = []string{"room", "tenant"}

// share takes the limits of a text apart. It returns the user's.
func (s *sim) share(text string) string {
	limits := strings.Split(text, " & ")
	for i, text := range limits[1:] {
		s.shared = append(s.shared, newTerms(policy.Must(text)))
		s.names = append(s.names, others[i])
	}
	return limits[0]
}

// limits returns the limits of all activities or subjects.
func (s *sim) limits() string {
	var text strings.Builder
	text.WriteString(limitsOf(s.activities))
	for _, t := range s.shared {
		text.WriteString(" & " + t.text)
	}
	return text.String()
}

// itemOf returns the limits of the item of a user or another subject.
func (s *sim) itemOf(id string) []*terms {
	for i, name := range s.names {
		if strings.HasPrefix(id, " "+name+" ") {
			return s.shared[i : i+1]
		}
	}
	return s.ordinary()
}

// planTogether fills a run with messages of a few users in two rooms. Instances are
// killed, and some are out of reach for a while.
func (s *sim) planTogether(requests int) {
	at := s.now
	for requests > 0 {
		n := min(requests, 10+s.random.IntN(40))
		requests -= n
		at += s.upTo(40_000)
		over := 200 + s.upTo(8000)
		s.scatter(n, at, over, s.say)
		s.scatter(s.random.IntN(3), at, over, s.kill)
		if s.chance(3) {
			s.at(at+s.upTo(over), func() { s.any().downUntil = s.now + s.upTo(5000) })
		}
		at += over
	}
}

// kill ends an instance with everything that it does, and starts another one.
func (s *sim) kill() {
	i := s.random.IntN(len(s.instances))
	s.instances[i].dead = true
	s.instances[i] = s.newInstance(i)
	s.stats["instances killed"]++
	s.line("instance %d is killed", i)
}

// say lets a user send a message. Users number their messages themselves, so the same
// id comes from several users of a room.
func (s *sim) say() {
	user := s.random.IntN(8)
	s.ids++
	r := ratelimit.Request{
		UserID: fmt.Sprint("v", user), Activity: s.activities[0].Name, Policy: s.activities[0].Limit, Count: 1,
		ID: fmt.Sprint("r", s.ids/4), Alone: s.chance(4),
	}
	if s.chance(6) {
		r.Count = 2
	}
	parts := []ratelimit.Part{{Request: r}}
	for i, name := range s.names {
		part := r
		part.UserID, part.For, part.Policy = fmt.Sprint(" ", name, " ", min(user%2, 1-i)), r.UserID, s.shared[i].Policy
		parts = append(parts, ratelimit.Part{Request: part, Subject: name})
	}
	s.sendAll(s.any(), ratelimit.Check, parts)
}

// sendAll decides an action of several parts. A client without an answer asks again with
// the same id, and some repeat or release what was granted.
func (s *sim) sendAll(in *instance, v ratelimit.Op, parts []ratelimit.Part) {
	s.stats["decisions"]++
	s.stats["of these, "+string(v)+" requests"]++
	o := &op{in: in, kind: v, leaves: math.MaxInt64, began: s.now, now: in.millis(), name: parts[0].UserID + " " + string(v) + " " + parts[0].ID}
	for _, p := range parts {
		id := p.ID
		if p.For != "" {
			id = p.For + " " + id
		}
		o.parts = append(o.parts, &op{
			in: in, kind: v, request: p.Request, terms: s.of(p.Policy), id: id, leaves: o.leaves, began: o.began, now: o.now,
			name: p.UserID + " " + string(v) + " " + id,
		})
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	s.line("%s: %d, receipt %d, by instance %d (%d ms ahead)", o.name, parts[0].Count, parts[0].At, in.number, in.ahead)
	s.start(o, func() {
		d, err := in.limiter.DecideAll(o.ctx, v, parts, false)
		o.cancel()
		o.ended = true
		s.mix(int64(len(o.name)), d.Used, d.Granted, int64(d.Requests), d.At)
		s.line("%s: %s %s, receipt %d, %d requests, error %v", o.name, d.Reason, d.LimitedBy, d.At, d.Requests, err)
		s.ledger.judgeAll(o, parts, d, err)
		switch {
		case v == ratelimit.Release:
		case err != nil, s.chance(6):
			s.again(in, parts, 3000)
		case d.At != 0 && s.chance(3):
			for i := range parts {
				parts[i].At = d.At
			}
			s.at(s.now+s.upTo(20_000), func() { s.sendAll(s.any(), ratelimit.Release, parts) })
		}
	})
	if v == ratelimit.Check { // a killed instance gives no answer
		s.at(s.now+5000, func() {
			if !o.ended {
				s.again(s.any(), parts, 0)
			}
		})
	}
}

// again lets a client repeat its request.
func (s *sim) again(in *instance, parts []ratelimit.Part, within int64) {
	if s.chance(2) || in.dead {
		in = s.any()
	}
	s.at(s.now+s.upTo(within), func() { s.sendAll(in, ratelimit.Check, parts) })
}

// part returns the decision about one item that a request to the store is part of: o
// itself, or one of its parts. What a check gives back is a release.
func (o *op) part(k ratelimit.Key, drops bool) *op {
	for _, p := range o.parts {
		if p.request.UserID != k.UserID {
			continue
		}
		if r := o.in.sim.ledger.user(k.UserID).records[counter{p.id, k.Window}]; drops && o.kind == ratelimit.Check && r != nil {
			back := *p
			back.kind, back.name, back.request.At, back.gives = ratelimit.Release, p.name+" gives back", r.at, p
			return &back
		}
		return p
	}
	return o
}

// failed notes that the outcome of a request of a part is unknown, or that a part is not
// given back.
func (o *op) failed(k ratelimit.Key, drops bool) {
	if len(o.parts) == 0 {
		return
	}
	p := o.part(k, drops)
	p.unsure = true
	if p.gives != nil {
		p.gives.unsure = true
	}
}

// judgeAll judges the answer to a decision of several parts.
func (l *ledger) judgeAll(o *op, parts []ratelimit.Part, d ratelimit.Decision, err error) {
	s := l.sim
	s.stats["decisions that count in several items, such as that of a room"]++
	if err == nil && o.kind == ratelimit.Check {
		s.stats["answers "+string(d.Reason)]++
	}
	for i, p := range o.parts {
		if o.kind == ratelimit.Check && p.terms.Prepaid() {
			l.balancedPart(p, d, err)
		}
		u := l.user(p.request.UserID)
		now := o.now
		if o.kind == ratelimit.Release {
			now = p.releasedAt()
		}
		window, _ := p.terms.Item(now)
		r := u.records[counter{p.id, window}]
		counts := r != nil && !r.over
		switch {
		case o.kind == ratelimit.Release:
			if err == nil && counts && !u.given[receipt(p.id, r.at)] && r.at == p.request.At && r.n >= p.request.Count && now-r.at <= p.remembered() && r.remembers(now) && u.Holds(p.terms.numbers, now, r.at, r.n, false) {
				s.wrong("%s: the item of %q still counts it", o.name, p.request.UserID)
			}
		case err == nil && d.Outage != nil:
		case err == nil && d.Allowed:
			if !counts && (r == nil || u.freed < o.began) && (!p.terms.Prepaid() || !d.Leased && !d.Visit) {
				s.wrong("%s is told %s, and the item of %q has %s", o.name, d.Reason, p.request.UserID, r)
			}
			if d.At != 0 && counts && r.by == p && r.at != d.At {
				s.wrong("%s has the receipt %d, and the item of %q has %s", o.name, d.At, p.request.UserID, r)
			}
		case (err == nil || p.request.Fresh) && counts && r.by == p && !p.unsure && !o.in.limiter.CircuitOpen() && !u.given[receipt(p.id, r.at)] && u.Holds(p.terms.numbers, o.in.millis(), r.at, r.n, false):
			s.wrong("%s is told %s, error %v, and the item of %q still has %s", o.name, d.Reason, err, p.request.UserID, r)
		case err == nil && (d.LimitedBy == parts[i].Subject || d.LimitedBy == "act" && i == 0 || i > 0 && strings.HasPrefix(d.LimitedBy, parts[i].Subject+".")):
			if a := p.last; a != nil && a.surely || !p.terms.Prepaid() && a == nil && u.freedFor(p.terms) < s.now-1000 && u.Fits(p.terms.numbers, now, p.request.Count, true) && u.Fits(p.terms.numbers, s.now, p.request.Count, true) {
				s.wrong("%s is refused by %s, which has room: %v", o.name, d.LimitedBy, u)
			}
		}
	}
}
