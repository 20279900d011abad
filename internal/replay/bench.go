package replay

import (
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A bench decides requests as a guard would. It has each user's true state at
// hand, and each request is new. So it needs no limiter and no ids: the policy's
// plan always holds.
type bench struct {
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

// leastSweep is the number of items below which a bench does not look for
// expired ones.
const leastSweep = 1024

func newBench(p policy.Policy, figures bool) *bench {
	return &bench{policy: p, figures: figures, items: make(map[itemKey]*item), full: leastSweep}
}

// check counts and decides a request.
func (b *bench) check(line Line) (d ratelimit.Decision) {
	p, now := b.policy, line.Time
	i := b.item(line.User, now)
	if !b.figures && i.refused <= now && now < i.until {
		d.Reason, d.Wait = ratelimit.Limited, millis(i.until-now)
		return d
	}
	u, ok := p.Take(now, 1, uint64(now), i.state)
	if !ok {
		d.Reason, d.Reading = ratelimit.Limited, p.Read(now, 1, i.state)
		d.LimitedBy = d.Name
		i.refused, i.until = now, now+d.Wait.Milliseconds()
		return d
	}
	perform(u, i.state)
	i.until = 0
	if b.figures {
		d.Reading = p.Read(now, 0, i.state)
	}
	if u.ReadyAt <= now {
		d.Allowed, d.Reason = true, ratelimit.OK
		return d
	}
	d.Reason, d.ReadyAt, d.Wait = ratelimit.Delayed, u.ReadyAt, millis(u.ReadyAt-now)
	d.Waiting = p.Waiting(now, u.ReadyAt, i.state)
	return d
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// read returns the figures of a user at the time at, in Unix milliseconds.
func (b *bench) read(user string, at int64) policy.Reading {
	return b.policy.Read(at, 0, b.item(user, at).state)
}

// perform changes s as u says.
func perform(u policy.Update, s policy.State) {
	for _, a := range u.Acts {
		switch a.Verb {
		case policy.Add:
			s[a.Attr] += a.Value
		case policy.Set:
			s[a.Attr] = a.Value
		case policy.Delete:
			delete(s, a.Attr)
		}
	}
}

// item returns the user's item for the time now, in Unix milliseconds.
func (b *bench) item(user string, now int64) *item {
	window, expires := b.policy.Item(now)
	key := itemKey{user, window}
	i := b.items[key]
	if i == nil {
		if len(b.items) >= b.full {
			b.sweep(now)
		}
		i = &item{state: make(policy.State, 4)}
		b.items[key] = i
	}
	i.expires = max(i.expires, expires)
	return i
}

// sweep drops the items that have expired. It runs each time the number of items
// has doubled, so a bench holds at most about twice as many as still matter.
func (b *bench) sweep(now int64) {
	for key, i := range b.items {
		if i.expires < now/1000 {
			delete(b.items, key)
		}
	}
	b.full = max(leastSweep, 2*len(b.items))
}
