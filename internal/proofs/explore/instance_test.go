package explore

import (
	"context"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// An instance is what one process keeps between its decisions.
type instance struct {
	knowns []ratelimit.Known // by the number of the item in explorer.keys
	probed time.Time         // the table's circuit; zero: closed
	busy   []time.Time       // the circuit of each item's key; zero: closed
}

// snapshot returns the instance as it is now.
func (r *run) snapshot() instance {
	in := instance{knowns: make([]ratelimit.Known, len(r.x.keys)), busy: make([]time.Time, len(r.x.keys))}
	for i, k := range r.x.keys {
		in.probed, in.busy[i] = r.limit.CircuitProbed(k)
		in.knowns[i] = r.limit.Memory.Recall(k)
	}
	return in
}

// load puts the limiter in the state of an instance.
func (r *run) load(number uint32) {
	in := r.x.instances.at(number)
	if in.knowns == nil { // it is new
		in = instance{knowns: make([]ratelimit.Known, len(r.x.keys)), busy: make([]time.Time, len(r.x.keys))}
	}
	r.circuits(in)
	for i, k := range r.x.keys {
		known := in.knowns[i]
		if r.x.lends() {
			known = copied(known)
		}
		r.limit.Memory.Change(k, func(ratelimit.Known) ratelimit.Known { return known })
	}
}

// circuits opens and closes the limiter's circuits by decisions. The first one is
// answered, and closes the table's circuit and its own. Then one is throttled, and one of
// another user gets no answer.
func (r *run) circuits(in instance) {
	same := true
	var late time.Time
	for i, k := range r.x.keys {
		probed, busy := r.limit.CircuitProbed(k)
		same = same && probed.Equal(in.probed) && busy.Equal(in.busy[i])
		for _, t := range []time.Time{probed, busy} {
			if t.After(late) {
				late = t
			}
		}
	}
	if same {
		return
	}
	store, now, attempts := r.limit.Store, r.limit.Now, r.limit.NewBudget
	for i, k := range r.x.keys {
		if !late.IsZero() {
			r.ask(k.UserID, stranger{}, late.Add(time.Hour))
		}
		if !in.busy[i].IsZero() {
			r.ask(k.UserID, stranger{answer{failure: throttled}.err()}, in.busy[i])
		}
	}
	if !in.probed.IsZero() {
		r.ask("other", stranger{errNoAnswer}, in.probed)
	}
	r.limit.Store, r.limit.Now, r.limit.NewBudget = store, now, attempts
}

// ask asks for the status of a user. Only its effect on the circuits matters.
func (r *run) ask(user string, s stranger, at time.Time) {
	r.limit.Store, r.limit.Now, r.limit.NewBudget = s, func() time.Time { return at }, nil
	q := ratelimit.Request{UserID: user, Activity: "act", Policy: r.x.policies[0].Policy, Count: 1, ID: "other"}
	_, _ = r.limit.Decide(context.Background(), ratelimit.Status, q)
}

// A stranger is an empty store, or one that fails.
type stranger struct{ err error }

func (s stranger) Update(context.Context, ratelimit.Write) (ratelimit.Item, bool, error) {
	return ratelimit.Item{}, false, errNoAnswer
}

func (s stranger) Read(context.Context, ratelimit.Key) (ratelimit.Item, error) {
	return ratelimit.Item{}, s.err
}

func (s stranger) Delete(context.Context, ratelimit.Key) error { return errNoAnswer }
