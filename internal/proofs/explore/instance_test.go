package explore

import (
	"context"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// An instance is what one process keeps between its decisions.
type instance struct {
	knowns []ratelimit.Known // by the number of the window in explorer.windows
	probed time.Time         // the table's circuit; zero: closed
	busy   time.Time         // the user's circuit; zero: closed
}

func encodeInstance(b []byte, in instance) []byte {
	for _, k := range in.knowns {
		b = encodeKnown(b, k)
	}
	return encodeTime(encodeTime(b, in.probed), in.busy)
}

// snapshot returns the instance as it is now.
func (r *run) snapshot() instance {
	in := instance{knowns: make([]ratelimit.Known, len(r.x.windows))}
	in.probed, in.busy = r.limit.CircuitProbed(key(0))
	for i, w := range r.x.windows {
		in.knowns[i] = r.limit.Memory.Recall(key(w))
	}
	return in
}

// load puts the limiter in the state of an instance.
func (r *run) load(number uint32) {
	in := r.x.instances.at(number)
	if probed, busy := r.limit.CircuitProbed(key(0)); !probed.Equal(in.probed) || !busy.Equal(in.busy) {
		r.circuits(in, probed, busy)
	}
	for i, w := range r.x.windows {
		var k ratelimit.Known
		if in.knowns != nil {
			k = in.knowns[i]
		}
		r.limit.Memory.Change(key(w), func(ratelimit.Known) ratelimit.Known { return k })
	}
}

// circuits opens and closes the limiter's circuits by decisions: first an answered
// one, which closes both, then one that is throttled, and one of another user
// without an answer.
func (r *run) circuits(in instance, probed, busy time.Time) {
	store, now, attempts := r.limit.Store, r.limit.Now, r.limit.NewBudget
	if !probed.IsZero() || !busy.IsZero() {
		late := probed
		if busy.After(late) {
			late = busy
		}
		r.ask("u", stranger{}, late.Add(time.Hour))
	}
	if !in.busy.IsZero() {
		r.ask("u", stranger{answer{failure: throttled}.err()}, in.busy)
	}
	if !in.probed.IsZero() {
		r.ask("other", stranger{errNoAnswer}, in.probed)
	}
	r.limit.Store, r.limit.Now, r.limit.NewBudget = store, now, attempts
}

// ask asks for the status of a user. Only its effect on the circuits matters.
func (r *run) ask(user string, s stranger, at time.Time) {
	r.limit.Store, r.limit.Now, r.limit.NewBudget = s, func() time.Time { return at }, nil
	q := ratelimit.Request{UserID: user, Activity: "act", Policy: r.x.policies[0], Count: 1, ID: "other"}
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
