package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/crash"
)

// An exchange is one request, and what is sent beside it if no answer comes. Its connection can
// be dead, or the table slow.
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
type exchange struct {
	t       *attempts // nil once it has ended, because the runtime keeps a stopped timer for a while
	request *request
	third   time.Duration   // of the decision's time
	ctx     context.Context // of the request and of what is sent beside it

	mu       sync.Mutex
	requests int     // sent beside the request
	again    bool    // the write was sent again
	settled  *answer // the first answer of what was sent beside the request

	stop  context.CancelFunc // ends ctx
	timer *time.Timer        // sends the next probe
}

// minWait is the shortest time that makes a request count as slow.
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
	x := &exchange{t: t, request: r, third: third}
	x.ctx, x.stop = context.WithCancel(t.ctx)
	defer x.stop()
	x.mu.Lock()
	x.timer = time.AfterFunc(third, x.beside)
	x.mu.Unlock()
	return x.end(r.by(x.ctx, t.limiter.Store))
}

// end returns the answer of the request, or the one of what was sent beside it if that came
// first.
func (x *exchange) end(a answer) answer {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer.Stop()
	t := x.t
	x.t = nil
	t.requests += x.requests
	late := x.settled != nil && a.err != nil
	if x.again || late { // the id in the item can be the other request's
		t.question.sent.lost(x.request)
	}
	if late {
		return *x.settled
	}
	return a
}

// beside sends a probe, and perhaps the request once more.
func (x *exchange) beside() {
	defer crash.Contain()
	l := x.send(false)
	if l == nil {
		return
	}
	r, store := x.request, l.redial()
	if r.verb == reads {
		x.settle(r.by(x.ctx, store))
		return
	}
	a := probeOf(r.write.Key).by(x.ctx, store)
	if a.err == nil && a.item.allows(r.write) {
		if x.send(true) == nil {
			return
		}
		a = r.by(x.ctx, store)
	}
	x.settle(a)
}

// send counts another request, and returns the limiter that sends it. It returns nil if the
// request may not be sent.
func (x *exchange) send(again bool) *Limiter {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.t == nil || x.settled != nil || again && x.t.limiter.isOld(&x.request.write) {
		return nil
	}
	if x.requests == 0 { // another probe after two thirds, and no more
		x.timer.Reset(x.third)
	}
	x.requests++
	x.again = x.again || again
	return x.t.limiter
}

// settle ends the request if a is an answer, and the first one.
func (x *exchange) settle(a answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if a.err == nil && x.settled == nil && x.t != nil {
		x.settled = &a
		x.stop()
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
