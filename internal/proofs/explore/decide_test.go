package explore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A decision of the real limiter depends only on its request, on what it reads
// from the clock and from its instance, and on what the store answers. So the
// explorer does not keep a decision that waits for the store. It keeps the list
// of what the decision was told, and runs the decision again, from the start,
// with one more answer. It runs each list only once, and keeps the result.

// A told is the next thing that a decision is told.
type told struct {
	after    uint32 // the decision as it was before; for the first told of a decision the number of its request
	first    bool
	now      int64 // what the clock shows from here on
	instance uint32
	answer   answer
}

// An answer is what the store answered.
type answer struct {
	failure outcome
	item    uint32
	done    bool
}

type outcome uint8

const (
	answered outcome = iota
	unknown          // no answer came
	throttled
)

// An ask is what a decision wants from the store, or how it ended.
type ask struct {
	what     asked
	write    uint32 // update
	item     int    // read and remove
	decision uint32 // ended
	instance uint32 // the instance at that moment
	attempts uint8  // requests sent so far
	unsure   bool   // an attempt had an unknown outcome
	probed   bool   // the first request was a probe, which is sent once
}

// endsEarly reports whether the decision ended with attempts left, though it got no answer.
func (a ask) endsEarly(tries int) bool {
	return a.attempts > 0 && int(a.attempts) < tries && (!a.probed || a.attempts > 1)
}

type asked uint8

const (
	ended asked = iota
	update
	read
	remove
	look // at the clock
)

// A result is how a decision ended, without the figures that the explorer does not look
// at.
type result struct {
	failed, outage         bool // the caller got an error; the table did not decide
	Allowed, Leased, Visit bool
	Reason                 ratelimit.Reason
	Granted, At, ReadyAt   int64
}

// stopped is what a decision panics with when it has to wait.
type stopped struct{}

// A run is one run of a decision with everything it is told.
type run struct {
	x     *explorer
	told  []told
	at    int
	limit *ratelimit.Limiter
	want  ask
}

// decide runs the decision that was told all this, and returns what it wants
// next.
func (x *explorer) decide(number uint32) ask {
	r := &run{x: x}
	for n := number; ; n = x.tolds.at(n).after {
		r.told = append(r.told, x.tolds.at(n))
		if x.tolds.at(n).first {
			break
		}
	}
	for i, j := 0, len(r.told)-1; i < j; i, j = i+1, j-1 {
		r.told[i], r.told[j] = r.told[j], r.told[i]
	}
	memory := ratelimit.NewMemory(1 << 20)
	memory.Crowd = crowd
	r.limit = &ratelimit.Limiter{Memory: memory, Now: func() time.Time { return time.UnixMilli(r.told[r.at].now) }}
	r.load(r.told[0].instance)
	r.limit.Store, r.limit.Now = r, r.now
	c := x.calls.at(r.told[0].after)
	r.limit.NewBudget = func() ratelimit.Budget { left := budget(c.tries); return &left }
	r.run(c)
	if r.at != len(r.told)-1 {
		panic("a decision ended before it was told everything: it is not a function of what it is told")
	}
	r.want.instance = x.instances.number(r.snapshot())
	for _, t := range r.told[1:] {
		if k := x.asks[t.after]; t.answer.failure == unknown && (k.what != update || x.writes.at(k.write).ID != ratelimit.ID{}) {
			r.want.unsure = true
		}
	}
	return r.want
}

// run asks the limiter, until it has to wait or ends.
func (r *run) run(c call) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(stopped); !ok {
				panic(v)
			}
		}
	}()
	ctx := context.Background()
	var d ratelimit.Decision
	var err error
	op, ok := ops[c.verb]
	switch {
	case len(c.parts) > 0:
		d, err = r.limit.DecideAll(ctx, cmp.Or(op, ratelimit.Check), c.parts, false)
	case ok:
		d, err = r.limit.Decide(ctx, op, c.request)
	default:
		d, err = r.limit.Check(ctx, c.request)
	}
	r.want = ask{what: ended, attempts: r.want.attempts, probed: r.want.probed, decision: r.x.results.number(result{err != nil, d.Outage != nil, d.Allowed, d.Leased, d.Acquired, d.Reason, d.Granted, d.At, d.ReadyAt})}
}

// ops has the operation of each verb that does not check.
var ops = map[verb]ratelimit.Op{release: ratelimit.Release, unlock: ratelimit.Release, renew: ratelimit.Renew, reset: ratelimit.Reset, status: ratelimit.Status}

// budget is a budget of so many attempts.
type budget int

func (b *budget) Next(context.Context, bool) bool {
	*b--
	return *b >= 0
}

// wait returns what the decision is told next. If that is not known yet, the
// decision stops.
func (r *run) wait(want ask) told {
	if want.what != look {
		r.want.attempts++
	}
	want.attempts, want.probed = r.want.attempts, want.probed || r.want.probed
	r.want = want
	if r.at == len(r.told)-1 {
		panic(stopped{})
	}
	before := r.told[r.at+1].instance
	if r.x.shared && r.x.instances.number(r.snapshot()) != before {
		r.load(before)
	}
	r.at++
	return r.told[r.at]
}

func (r *run) now() time.Time {
	if r.x.fine && r.at > 0 {
		r.wait(ask{what: look})
	}
	return time.UnixMilli(r.told[r.at].now)
}

var errNoAnswer = errors.New("no answer")

func (a answer) err() error {
	switch a.failure {
	case unknown:
		return errNoAnswer
	case throttled:
		return &ratelimit.StoreError{Failure: ratelimit.NotApplied, What: "throttled"}
	default:
		return nil
	}
}

func (r *run) Update(_ context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	a := r.wait(ask{what: update, write: r.x.writes.number(w), probed: w.Now == 0}).answer
	return r.x.items.at(a.item), a.done, a.err()
}

func (r *run) Read(_ context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	a := r.wait(ask{what: read, item: r.x.number(k)}).answer
	return r.x.items.at(a.item), a.err()
}

func (r *run) Delete(_ context.Context, k ratelimit.Key) error {
	return r.wait(ask{what: remove, item: r.x.number(k)}).answer.err()
}
