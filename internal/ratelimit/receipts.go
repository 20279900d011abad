package ratelimit

import (
	"cmp"
	"strconv"

	"github.com/cric-talk/guards/internal/policy"
)

// A receipt is what a release or a renewal presents, At and the id of the check, beside what
// the item knows of that check. Times are Unix milliseconds.
type receipt struct {
	kept    Location // where the item keeps the check's id; the zero Location: it does not
	at      int64    // when the log's slots were taken or last renewed
	check   int64    // when the check came; 0: the item does not know it
	counted int64    // when the actions count in limits other than a log
	now     int64    // the time of the question, and at least each time that the item has
	wrong   bool     // At is no receipt of what the item knows under this id
}

// known reports whether the item keeps the check's id.
func (r *receipt) known() bool { return r.kept.Set != "" }

// receipt compares the receipt of q with the item. An id that was renewed has notes of when
// the check came and when it was last renewed, and each time between is a receipt. The time
// of any other id is known to one generation. A log knows the exact time of its slots.
func (q *question) receipt(item Item) (r receipt) {
	r.kept, _ = item.Find(q.write)
	r.at, r.check, r.now = q.At, q.At, q.write.Now
	switch k := r.kept; {
	case !r.known():
	case q.renewed(k):
		r.at, r.check, r.now = k.Note, k.First, max(r.now, k.Note)
		r.wrong = q.At < k.First || q.At > k.Note // without First, any earlier time can be the check's
	case k.Set != wholeSet:
		r.wrong = !q.isFrom(k)
	}
	r.counted = max(r.check, r.kept.Last)
	r.now = max(r.now, r.kept.Last)
	return r
}

// isFrom reports whether the item can keep the id in this set if the check came at At. A
// check keeps its id in its own generation, and a late job's id perhaps in the next one.
func (q *question) isFrom(k Location) bool {
	w := q.write
	w.Now = q.At
	own, next := w.in(0), w.in(1)
	return k.Set == own.Set && k.ID == own.ID || q.Policy.Queues() && k.Set == next.Set && k.ID == next.ID
}

// renewed reports whether the actions whose id the item keeps were renewed. Their largest
// note is then the time of the last renewal. A smaller note is the number of a partial
// grant, and a queue's note is a place.
func (q *question) renewed(kept Location) bool { return kept.Note > MaxReleased && !q.Policy.Queues() }

// An origin is when the check of a release came, as the parts with slots know it.
type origin struct {
	at     int64 // in Unix milliseconds; 0: none of them knows it, or none was asked
	unsure bool  // one of them does not know the id, so the receipt may come from a renewal
}

// undo returns the step that gives back the request's actions in item. It sends nothing if
// they do not count there, or if they were given back already.
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
//
// After a renewal, the receipt has the time of the slots, and other limits and other parts
// know the actions by the time of the check. An item with slots keeps that time, so it is
// asked first, and the step passes it on.
//
// With Clear, the same write ends the series of each lockout. It has an id of its own, so an
// earlier release is no copy of it, and it is sent even without actions to give back. Only one
// of the two gives back, even if they are on their way at once: the item refuses a give-back
// by either id. A clear can be the first write of an item, so it says when the item expires.
func (q *question) undo(item Item) step {
	back := Write{Key: q.write.Key, GivesBack: q.mine, Now: q.write.Now, KeepOld: q.write.KeepOld, Renewed: q.write.Renewed}
	back.ID = q.id("release " + strconv.FormatInt(q.At, 10))
	locks := q.Policy.HasLockout() && q.For == ""
	if locks {
		back.OtherID = q.id("clear " + strconv.FormatInt(q.own, 10))
	}
	before, released := item.Find(back)
	cleared := false
	if locks && q.Clear {
		clears := back
		clears.ID, clears.OtherID = back.OtherID, ID{}
		_, cleared = item.Find(clears)
		back.ID, back.OtherID = back.OtherID, back.ID
	}
	r := q.receipt(item)
	if q.renewed(r.kept) && !r.wrong {
		back.First, back.Last = r.check, r.check
	}
	s := q.giveBack(item, r, back, before, released)
	if !locks || !q.Clear || cleared {
		return s
	}
	if back.OtherID = (ID{}); s.sends() {
		back = s.request.write
	}
	back.Update, back.Expires = q.Policy.Clear(back.Update), q.Policy.KeptUntil(q.write.Now, item.State)
	s.request = request{updates, back}
	return s
}

// giveBack returns the step that gives back the actions of the receipt r, by the write back
// without its update. Before is where the item keeps the id of that write, if they were released.
//
// A refused check takes its id away even if nothing of its count is left to give back. If the
// id stayed, the next attempt would be admitted for a count that is over. For example, with
// bucket 1/1s, in a room that is full at first:
//
//	12:00:00.0  check r1    the user's bucket counts it, and the room answers late
//	12:00:01.2  check r2    counted: the bucket was full again
//	12:00:01.3              the room refuses r1: its count is over, and its id goes
//	12:00:01.4  check r1    refused by the bucket, as any other check
func (q *question) giveBack(item Item, r receipt, back Write, before Location, released bool) step {
	back.Drop = r.kept
	s, slots := step{origin: q.origin}, q.Policy.HasLog()
	switch {
	case !slots:
	case released:
		s.origin.at = cmp.Or(before.First, q.At)
	case r.known() && !r.wrong && r.check != 0:
		s.origin.at = max(s.origin.at, r.check)
	default:
		s.origin.unsure = true
	}
	switch {
	case released, r.wrong, q.mine && (r.kept.ReliedOn || q.renewed(r.kept)):
		return s
	case s.origin == origin{unsure: true} && !slots && r.kept.Set != wholeSet: // perhaps not the receipt of what counts here
		return s
	case !r.known() && r.now-q.At < q.write.span().certain(): // unknown
		return s
	}
	var ok bool
	late := r.check == 0 || r.now-r.check > q.write.span().promised && r.kept.Set != wholeSet
	if late || !r.known() || q.slotsOnly { // only a log knows its actions without their id
		back.Update, ok = q.Policy.Free(r.now, r.at, q.Count, item.State)
	} else {
		back.Update, ok = q.Policy.Undo(r.now, r.at, r.counted, q.Count, item.State)
	}
	if !ok && q.mine && r.known() && !late {
		back.Update, ok = policy.Update{}, true
	}
	if ok {
		s.request = request{updates, back}
	}
	return s
}

// renew returns the step that moves the request's actions in item to now, or to where the
// parts before this one are. It sends nothing if they do not count there, or if another
// renewal has moved them since the receipt.
//
// The update moves the check's id to the current set. So the item knows the id as long
// as its slots are renewed, a release finds it, and nothing piles up.
func (q *question) renew(item Item) (s step) {
	r := q.receipt(item)
	if r.wrong || r.at != q.At || !r.known() && r.now-q.At < q.write.span().certain() {
		return s
	}
	w := q.write
	w.Drop, w.Note = r.kept, cmp.Or(q.to, r.now)
	if r.known() && r.check != 0 { // otherwise At can be an earlier renewal
		w.First, w.Last = r.check, r.counted
	}
	var ok bool
	if w.Update, ok = q.Policy.Renew(w.Note, r.at, q.Count, item.State); ok {
		w.Expires = q.Policy.KeptUntil(w.Now, item.State)
		s.request = request{updates, w}
	}
	return s
}
