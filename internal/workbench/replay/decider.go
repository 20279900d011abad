package replay

import (
	"maps"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A decider decides requests as a guard would. It has each user's true state at
// hand, and each request is new. So it needs no limiter and no ids: the policy's
// plan always holds. The store in memory would do the same in twice the time,
// because it copies an item for each write.
type decider struct {
	policy  policy.Policy
	figures bool // decisions have all figures, and not only those that a report needs
	items   map[itemKey]*item
	full    int // number of items at which expired ones are dropped
}

type itemKey struct {
	user   string
	window int64 // 0 if the item serves forever
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

func newDecider(p policy.Policy, figures bool) *decider {
	return &decider{policy: p, figures: figures, items: make(map[itemKey]*item), full: leastSweep}
}

// check counts and decides a request.
func (d *decider) check(line traffic.Line) (a ratelimit.Decision) {
	p, now := d.policy, line.Time
	i := d.item(line.User, now)
	if !d.figures && i.refused <= now && now < i.until {
		a.Reason, a.Wait = ratelimit.Limited, millis(i.until-now)
		return a
	}
	u, ok := p.Take(now, 1, uint64(now), i.state)
	if !ok {
		a.Reason, a.Reading = ratelimit.Limited, p.Read(now, 1, i.state)
		a.LimitedBy = a.Name
		i.refused, i.until = now, now+a.Wait.Milliseconds()
		return a
	}
	u.ApplyTo(i.state)
	i.until = 0
	if d.figures {
		a.Reading = p.Read(now, 0, i.state)
	}
	if u.ReadyAt <= now {
		a.Allowed, a.Reason = true, ratelimit.OK
		return a
	}
	a.Reason, a.ReadyAt, a.Wait = ratelimit.Delayed, u.ReadyAt, millis(u.ReadyAt-now)
	a.Waiting = p.Waiting(now, u.ReadyAt, i.state)
	return a
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// read returns the figures of a user at the time at, in Unix milliseconds.
func (d *decider) read(user string, at int64) policy.Reading {
	return d.policy.Read(at, 0, d.item(user, at).state)
}

// item returns the user's item for the time now, in Unix milliseconds.
func (d *decider) item(user string, now int64) *item {
	window, expires := d.policy.Item(now)
	key := itemKey{user, window}
	i := d.items[key]
	if i == nil {
		if len(d.items) >= d.full {
			d.sweep(now)
		}
		i = &item{state: make(policy.State, 4)}
		d.items[key] = i
	}
	i.expires = max(i.expires, expires)
	return i
}

// sweep drops the items that have expired. It runs each time the number of items
// has doubled, so a decider holds at most about twice as many as still matter.
func (d *decider) sweep(now int64) {
	maps.DeleteFunc(d.items, func(_ itemKey, i *item) bool { return i.expires < now/1000 })
	d.full = max(leastSweep, 2*len(d.items))
}
