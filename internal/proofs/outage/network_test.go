package outage_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A network stands between one instance and a table that all instances share.
// Time is virtual in its tests, so it passes only where the network waits.
type network struct {
	table   ratelimit.Store
	counted func(context.Context, ratelimit.Write) // called for each write that the table performed

	mu    sync.Mutex
	route func(ratelimit.Key) way
}

// A way is how one request reaches the table and how its answer comes back.
type way func(ctx context.Context, perform func() reply) reply

// A reply is what the table answers.
type reply struct {
	item ratelimit.Item
	done bool
	err  error
}

// latency is how long a request takes to the table, and its answer back.
const latency = 2 * time.Millisecond

// healthy is the way of a table that works.
func healthy(_ context.Context, perform func() reply) reply {
	time.Sleep(latency)
	r := perform()
	time.Sleep(latency)
	return r
}

// refused is a connection that the other side refuses at once.
func refused(context.Context, func() reply) reply {
	return reply{err: errors.New("connection refused")}
}

// blackHole gives no answer. The request does not reach the table.
func blackHole(ctx context.Context, _ func() reply) reply {
	<-ctx.Done()
	return reply{err: ctx.Err()}
}

// slow takes 1.5 s to the table and 1.5 s back, whether or not somebody still
// waits. So the table counts what it is sent, and nobody learns it.
func slow(ctx context.Context, perform func() reply) reply {
	answer := make(chan reply, 1)
	go func() {
		time.Sleep(1500 * time.Millisecond)
		r := perform()
		time.Sleep(1500 * time.Millisecond)
		answer <- r
	}()
	select {
	case r := <-answer:
		return r
	case <-ctx.Done():
		return reply{err: ctx.Err()}
	}
}

// lost performs the request. The connection ends before the answer.
func lost(ctx context.Context, perform func() reply) reply {
	healthy(ctx, perform)
	return reply{err: errors.New("connection reset")}
}

// throttled is a table that answers, and refuses to work.
func throttled(context.Context, func() reply) reply {
	time.Sleep(2 * latency)
	return reply{err: &ratelimit.StoreError{Failure: ratelimit.NotApplied, What: "the table is throttled"}}
}

// denied is a table that answers, and lets nobody in.
func denied(context.Context, func() reply) reply {
	time.Sleep(2 * latency)
	return reply{err: &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "access to the table is denied"}}
}

// use sends every request that comes from now on by w.
func (n *network) use(w way) { n.useFor(func(ratelimit.Key) way { return w }) }

// useFor sends requests by the way that route returns for their key.
func (n *network) useFor(route func(ratelimit.Key) way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.route = route
}

// oneIn returns a route that lets one request in every through, always two in a
// row, as a probe and its decision need. The others go by w.
func oneIn(every int, w way) func(ratelimit.Key) way {
	sent := 0
	return func(ratelimit.Key) way { // the network's lock guards sent
		if sent++; sent%(2*every) < 2 {
			return healthy
		}
		return w
	}
}

func (n *network) send(ctx context.Context, k ratelimit.Key, perform func() reply) reply {
	n.mu.Lock()
	w := n.route(k)
	n.mu.Unlock()
	return w(ctx, perform)
}

// Update implements ratelimit.Store.
func (n *network) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	r := n.send(ctx, w.Key, func() (r reply) {
		r.item, r.done, r.err = n.table.Update(context.WithoutCancel(ctx), w)
		if r.done {
			n.counted(ctx, w)
		}
		return r
	})
	return r.item, r.done, r.err
}

// Read implements ratelimit.Store.
func (n *network) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	r := n.send(ctx, k, func() (r reply) {
		r.item, r.err = n.table.Read(context.WithoutCancel(ctx), k)
		return r
	})
	return r.item, r.err
}

// Delete implements ratelimit.Store.
func (n *network) Delete(ctx context.Context, k ratelimit.Key) error {
	r := n.send(ctx, k, func() reply { return reply{err: n.table.Delete(context.WithoutCancel(ctx), k)} })
	return r.err
}
