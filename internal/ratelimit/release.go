package ratelimit

import "strconv"

// release reads the item first, because only the item shows what can be given
// back. It ends after an update that gives back the actions and the id
// together, or when the item has nothing to give back.
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

// undo plans to give back r's actions in item. It returns false if the item has
// nothing to give back, or was given it back already.
//
// While the item remembers the request, the request's id is the receipt. The
// update removes the id, so a second release finds nothing.
//
// A log remembers its actions for longer than their ids. After 20 to 40 s the
// slots are the receipt. The update then keeps an id of the release itself, so
// that a repeat of the release within 20 s changes nothing.
func (r *Request) undo(w Write, item Item) (Write, bool) {
	u, ok := r.Policy.Undo(w.Now, r.At, r.Count, item.State)
	if !ok {
		return w, false
	}
	kept, found := item.Find(w)
	back := Write{Key: w.Key, Update: u, Drop: kept, Now: w.Now}
	if u.ByID {
		return back, found
	}
	if !found && w.Now-r.At < remembered {
		return w, false // unknown, or released already
	}
	back.ID = NewID("release " + strconv.FormatInt(r.At, 10) + " " + r.ID)
	_, released := item.Find(back)
	return back, !released
}
