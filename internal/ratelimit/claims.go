package ratelimit

import "context"

// A claim tells where a check is counted, and which attempt has counted it. Two attempts
// of one request can run at the same time. The first one counts the user, and the room
// refuses it. The second one finds the user's id, and the room admits it. If the first one
// now gave back what the user's item counts, the second one would be admitted and not
// counted. So:
//
//   - A decision gives back only what its own write has counted, and not what it found.
//   - A decision that is about to be admitted marks each id that it found ([ReliedOn]). The
//     mark is one conditional write, after the last part has admitted. An earlier mark
//     would keep counts of requests that another part refuses.
//   - An id with a mark is not given back. If an id that was found is gone before it is
//     marked, that part is counted again.
//
// An unknown outcome of one's own write can't be told from a write of another attempt, so
// it counts as found.
type claim struct {
	kept     Location // where the id was found
	own      bool     // this decision's own write has counted it
	fallback bool     // in memory, and not in the store
	replaced int      // memory: Known.replaced, when this decision counted it
}

// isFound reports whether another decision has counted the check, or perhaps this one.
func (c *claim) isFound() bool { return !c.own && c.kept.Set != "" }

// relyOn returns k with a mark beside the id of w, wherever k has it.
func (k Known) relyOn(w Write) Known {
	for _, item := range []*Item{&k.Seen, &k.Fallback} {
		if kept, found := item.Find(w); found {
			*item = item.perform(Write{Key: w.Key, RelyOn: kept})
		}
	}
	return k
}

// unclaim gives back what the decision d of the check has counted. It keeps what another
// decision has counted, or relies on. It returns d with the figures after that.
func (l *Limiter) unclaim(ctx context.Context, check *question, d Decision) Decision {
	switch {
	case d.Leased || d.Acquired:
		l.Memory.refund(check)
	case check.claim.own:
		r := check.Request
		r.At = check.write.Now
		q := r.ask(Release, l.Clock().UnixMilli())
		if q.write.Key != check.write.Key { // its window is over, and another attempt can count in the next one
			break
		}
		if q.mine = true; check.claim.fallback {
			l.Memory.Change(q.write.Key, func(k Known) Known { return k.giveBack(&q, check.claim) })
			break
		}
		q.shown = check.shown          // with its count: what is known can be from before the check
		back, err := l.decide(ctx, &q) // if it fails, too few are admitted
		if d.Requests += back.Requests; err == nil {
			d.Reading = back.Reading
		}
	}
	d.At = 0
	return d
}

// giveBack returns k without the actions of q, a release, in what was admitted alone. If the
// store has shown the item since the claim c, Seen does not have them. It can have the same id,
// counted by another attempt or by one without an answer, and that stays.
func (k Known) giveBack(q *question, c claim) Known {
	s := q.undo(k.Fallback)
	if !s.sends() { // such as after a reset
		return k
	}
	k.Fallback, _ = k.Fallback.Write(s.request.write)
	if s := q.undo(k.Seen); s.sends() && k.replaced == c.replaced {
		k.Seen, _ = k.Seen.Write(s.request.write)
	}
	return k
}
