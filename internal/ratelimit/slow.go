package ratelimit

import (
	"context"
	"sync"
	"time"
)

// A slow is a request that has no answer yet. Its connection can be dead, or the table slow.
// A second write in parallel would be wrong: if it landed after a release or a give-back had
// removed the id, it would count for nobody. So a probe is sent beside the request, on a new
// connection. It is a write that the store always refuses, so it counts nothing however late
// it is, and it brings the item:
//
//	the item has the request's id      the request is performed, and its answer is late or lost
//	the item does not allow the write  the answer is the item, as if the store had refused the write
//	otherwise                          the write is sent once more, on the new connection
//
// A read is simply sent a second time. The first answer of all these counts.
//
// For example, DECISION_TIMEOUT is 1 s:
//
//	ms   a dead connection              a table that answers after 600 ms
//	0    the request                    the request
//	333  a probe on a new connection    a probe on a new connection
//	343  it shows the item: no id.
//	     So the write is sent again
//	353  its answer decides
//	600                                 the answer of the request decides
type slow struct {
	t       *attempts
	request *request
	ctx     context.Context // of the request and of what is sent beside it

	mu       sync.Mutex
	ended    bool    // nothing may be sent any more
	requests int     // sent beside the request
	again    bool    // the write was sent again
	settled  *answer // the first answer of what was sent beside the request

	stop  context.CancelFunc // ends ctx
	timer *time.Timer        // sends the next probe
}

// minWait is the shortest time after which a request counts as slow.
const minWait = 5 * time.Millisecond

// exchange sends r. If there is no answer after a third of the decision's time, and again
// after two thirds, it sends a probe beside it. A write that can't be found again, such as a
// visit, gets only a third: the check's own write follows.
func (t *attempts) exchange(r *request) answer {
	third := max(minWait, t.limiter.Timeout/3)
	switch {
	case t.budget != nil, r.verb == deletes:
		return r.by(t.ctx, t.limiter.Store)
	case !r.repeatable():
		ctx, stop := context.WithTimeout(t.ctx, third)
		defer stop()
		return r.by(ctx, t.limiter.Store)
	}
	s := &slow{t: t, request: r}
	s.ctx, s.stop = context.WithCancel(t.ctx)
	defer s.stop()
	s.mu.Lock()
	s.timer = time.AfterFunc(third, func() {
		s.mu.Lock()
		if !s.ended {
			s.timer = time.AfterFunc(third, s.beside)
		}
		s.mu.Unlock()
		s.beside()
	})
	s.mu.Unlock()
	return s.end(r.by(s.ctx, t.limiter.Store))
}

// end returns the answer of the request, or the one of what was sent beside it if that came
// first.
func (s *slow) end(a answer) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.timer.Stop()
	t := s.t
	t.requests += s.requests
	late := s.settled != nil && a.err != nil
	if s.again || late { // the id in the item can be that of the other request
		t.amount.unsure = t.amount.unsure || s.request.write.ID != ID{}
	}
	if late {
		return *s.settled
	}
	return a
}

// beside sends a probe, and perhaps the request once more.
func (s *slow) beside() {
	r, w := s.request, s.request.write
	if r.verb == reads {
		if s.send(false) {
			s.settle(r.by(s.ctx, s.t.limiter.redial()))
		}
		return
	}
	if !s.send(false) {
		return
	}
	store := s.t.limiter.redial()
	probe := request{updates, Write{Key: w.Key, Update: nothing}}
	a := probe.by(s.ctx, store)
	if a.err == nil && a.item.allows(w) {
		if !s.send(true) {
			return
		}
		a = r.by(s.ctx, store)
	}
	s.settle(a)
}

// send reports whether another request may be sent, and counts it.
func (s *slow) send(again bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.settled != nil || again && s.t.isOld(&s.request.write) {
		return false
	}
	s.requests++
	s.again = s.again || again
	return true
}

// settle ends the request if a is an answer, and the first one.
func (s *slow) settle(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.err == nil && s.settled == nil && !s.ended {
		s.settled = &a
		s.stop()
	}
}

// A Redialer is a Store that can open a new connection.
type Redialer interface {
	// Redial returns the same store. Its next request opens a new connection.
	Redial() Store
}

// redial returns the store with a new connection, if it can open one.
func (l *Limiter) redial() Store {
	if r, ok := l.Store.(Redialer); ok {
		return r.Redial()
	}
	return l.Store
}
