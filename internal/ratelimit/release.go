package ratelimit

import "strconv"

// release reads the item first, because only the item shows what can be given
// back. Then it sends one update that removes the actions and the id in one
// step. If the store refuses the update, because the item has changed, release
// plans again from the item that came back. It ends without an update if the
// check does not count in the item.
func (t *tries) release(r *Request, w Write) (Decision, error) {
	item, err := t.read(w.Key)
	if err == nil {
		err = r.readable(w, item)
	}
	for err == nil {
		undo, ok := r.undo(w, item)
		if !ok {
			break
		}
		if !undo.Update.Holds(item.State) {
			return Decision{}, unreadable("")
		}
		var done bool
		item, done, err = t.update(undo)
		if done {
			break
		}
	}
	if err != nil {
		return Decision{}, err
	}
	return r.decision(w.Now, item.State, r.Count), nil
}

// undo plans to give back r's actions in item. It returns false if they do not
// count there, or if they were given back already.
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
// The item forgets the id of a release after 21 to 28 s. A late copy of an
// attempt arrives within 5 s.
//
// A log remembers its actions for longer than their ids. When the ids are gone,
// slots with the time of the receipt are enough.
func (r *Request) undo(w Write, item Item) (Write, bool) {
	u, ok := r.Policy.Undo(w.Now, r.At, r.Count, item.State)
	if !ok {
		return w, false
	}
	kept, found := item.Find(w)
	age := w.Now - r.At
	switch {
	case u.ByID && (!found || age > promised && kept.Set != wholeSet):
		return w, false // unknown, released already, or too late
	case !found && age < remembered:
		return w, false // unknown, or released already
	}
	back := Write{Key: w.Key, Update: u, Drop: kept, Now: w.Now}
	back.ID = NewID("release " + strconv.FormatInt(r.At, 10) + " " + r.ID)
	_, released := item.Find(back)
	return back, !released
}
