package replay

import (
	"maps"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A decider decides requests with the code of a guard's limiter. It takes the
// place of the limiter's store and memory: it holds each user's true state, and
// each request is new. The store in memory would need six times as long, because
// it copies an item for each write and looks for the request's id.
type decider struct {
	request ratelimit.Request
	items   map[ratelimit.Key]*item
	full    int // number of items at which expired ones are dropped
}

type item struct {
	state   policy.State
	expires int64 // Unix seconds

	// No request passes from the time refused to the time until, in Unix
	// milliseconds. In a replay nothing is given back.
	refused, until int64
}

// leastSweep is the number of items below which a decider does not look for
// expired ones.
const leastSweep = 1024

// newDecider returns a decider without requests. With figures, decisions have all
// figures, and not only those that a report needs.
func newDecider(p policy.Policy, figures bool) *decider {
	return &decider{
		request: ratelimit.Request{Policy: p, Count: 1, NoFigures: !figures},
		items:   make(map[ratelimit.Key]*item), full: leastSweep,
	}
}

// check counts and decides a request.
func (d *decider) check(line traffic.Line) (a ratelimit.Decision) {
	now := line.Time
	i := d.item(line.User, now)
	if d.request.NoFigures && i.refused <= now && now < i.until {
		a.Reason, a.Wait = ratelimit.Limited, time.Duration(i.until-now)*time.Millisecond
		return a
	}
	a = d.request.CountIn(now, i.state)
	i.until = 0
	if a.Reason == ratelimit.Limited {
		i.refused, i.until = now, now+a.Wait.Milliseconds()
	}
	return a
}

// read returns the figures of a user at the time at, in Unix milliseconds.
func (d *decider) read(user string, at int64) policy.Reading {
	return d.request.Policy.Read(at, 0, d.item(user, at).state)
}

// item returns the user's item for the time now, in Unix milliseconds. Each time
// the number of items has doubled, it drops those that have expired. So a decider
// holds at most about twice as many as still matter.
func (d *decider) item(user string, now int64) *item {
	window, expires := d.request.Policy.Item(now)
	key := ratelimit.Key{UserID: user, Window: window}
	i := d.items[key]
	if i == nil {
		if len(d.items) >= d.full {
			maps.DeleteFunc(d.items, func(_ ratelimit.Key, i *item) bool { return i.expires < now/1000 })
			d.full = max(leastSweep, 2*len(d.items))
		}
		i = &item{state: make(policy.State, 4)}
		d.items[key] = i
	}
	i.expires = max(i.expires, expires)
	return i
}
