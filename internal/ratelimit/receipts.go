package ratelimit

import (
	"cmp"
	"strconv"
)

// release gives back the actions of a check. It changes nothing if they do not count
// in the item.
func (t *attempts) release(q *question, shown Item) (Decision, error) {
	item, err := t.change(q, shown, q.undo)
	if err != nil {
		return Decision{}, err
	}
	return q.in(item.State).decision(q.Count, 0), nil
}

// renew moves the actions of a check to now. The item keeps their new receipt as the
// note of the check's id, and a repeat of the renewal finds it there.
func (t *attempts) renew(q *question, shown Item) (Decision, error) {
	item, err := t.change(q, shown, q.renew)
	if err != nil {
		return Decision{}, err
	}
	kept, found := item.Find(q.write)
	d := q.in(item.State).decision(q.Count, 0)
	at, now := q.receipt(kept)
	if _, counts := q.Policy.Renew(now, at, q.Count, item.State); counts && found && kept.Note != 0 {
		d.At = at
		return d, nil
	}
	d.Allowed, d.Reason, d.Granted = false, Expired, 0
	return d, nil
}

// change sends the update that plan makes of the item that was shown, in which the
// actions and the id change in one step. If plan makes none of it, change reads the item
// first. If the store refuses the update, because the item has changed, change plans
// again from the item that came back. It ends without an update if plan returns false.
// It returns the item after that.
//
// With several limits or a log, an item from memory is not enough, even if the id is
// still in its set. Of several limits, plan leaves out each that had nothing to give
// back then. And two renewals can have moved the slots and left the id in its set: what is
// left of their time are slots of others. Nobody else has the receipt of what this
// decision has counted, so there it is enough.
func (t *attempts) change(q *question, shown Item, plan func(Item) (Write, bool)) (item Item, err error) {
	w, ok := Write{}, false
	if item = shown; q.mine || !q.Policy.Named() && !q.write.Renewed {
		w, ok = plan(shown)
	}
	if !ok {
		if item, err = t.readFor(q); err == nil {
			w, ok = plan(item)
		}
	}
	for err == nil && ok {
		if !w.Update.Holds(item.State) {
			return Item{}, unreadable("")
		}
		var done bool
		if item, done, err = t.update(w); err != nil || done {
			break
		}
		if item.allows(w) {
			return Item{}, unreadable("")
		}
		w, ok = plan(item)
	}
	if err == nil {
		err = q.readable(item)
	}
	return item, err
}

const lost = 1 // question.to: an item with slots does not know the id, so the receipt may be that of a renewal

// undo plans to give back the request's actions in item. It returns false if they
// do not count there, or if they were given back already.
//
// The update removes the check's id and keeps an id of the release itself. So a
// second copy of the release changes nothing, even if the same check was
// counted again in between. For example:
//
//	12:00:00  check r1           counted, receipt 12:00:00
//	12:00:01  release r1         given back; item keeps "release 12:00:00 r1"
//	12:00:02  check r1           counted again
//	12:00:03  the release again  its id is in the item, so nothing changes
//
// A log remembers its actions for longer than their ids. When the ids are gone,
// slots with the time of the receipt are enough.
func (q *question) undo(item Item) (Write, bool) {
	kept, found := item.Find(q.write)
	at, now := q.receipt(kept)
	back := Write{Key: q.write.Key, Drop: kept, Note: q.renewed(kept), Now: q.write.Now, Hold: q.write.Hold, Renewed: q.write.Renewed}
	back.ID = q.id("release " + strconv.FormatInt(q.At, 10))
	before, released := item.Find(back)
	if q.to = max(q.to, back.Note, before.Note); q.write.Renewed && !found && !released {
		q.to = max(q.to, lost)
	}
	other := q.to == lost && !q.write.Renewed && kept.Set != wholeSet // perhaps not the receipt of what counts here
	if released || other || !found && now-at < q.write.span().certain() {
		return Write{}, false // released already, or unknown
	}
	u, ok := q.Policy.Undo(now, at, q.Count, item.State)
	if u.ByID && (!found || q.renewed(kept) != 0 || now-at > q.write.span().promised && kept.Set != wholeSet) {
		u, ok = q.Policy.Free(now, at, q.Count, item.State) // too late for the other limits, or the receipt is that of a renewal
	}
	back.Update = u
	return back, ok
}

// renew plans to move the request's actions in item to now, or to where the parts before
// this one are. It returns false if they do not count there, or if another renewal has
// moved them since the receipt.
//
// The update moves the check's id to the current set. So the item knows the id as long
// as its slots are renewed, a release finds it, and nothing piles up.
func (q *question) renew(item Item) (Write, bool) {
	kept, found := item.Find(q.write)
	at, now := q.receipt(kept)
	if at != q.At || !found && now-at < q.write.span().certain() {
		return Write{}, false
	}
	w := q.write
	w.Drop, w.Note = kept, cmp.Or(q.to, now)
	var ok bool
	w.Update, ok = q.Policy.Renew(w.Note, at, q.Count, item.State)
	return w, ok
}

// receipt returns the receipt of the actions whose id the item keeps, which is the
// time of their last renewal, and the time of the question, which is at least that.
func (q *question) receipt(kept Kept) (at, now int64) {
	renewed := q.renewed(kept)
	return max(q.At, renewed), max(q.write.Now, renewed)
}

// renewed returns when the actions whose id the item keeps were last renewed; 0: never.
// A smaller note is the number of a partial grant, and that of a queue is a place.
func (q *question) renewed(kept Kept) int64 {
	if kept.Note <= MostReleased || q.Policy.Queues() {
		return 0
	}
	return kept.Note
}
