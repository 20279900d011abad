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

// undo plans to give back r's actions in item. It returns false if the item has
// nothing to give back, or was given it back already.
//
// The update removes the request's id and keeps an id of the release itself. So
// a second release finds nothing, even if the same request was counted again in
// between. For example: check r1 at 12:00:00, release it, check r1 again at
// 12:00:02. A late copy of the first release then changes nothing.
//
// A log remembers its actions for longer than their ids. After that, the slots
// with the time of the receipt are enough.
func (r *Request) undo(w Write, item Item) (Write, bool) {
	u, ok := r.Policy.Undo(w.Now, r.At, r.Count, item.State)
	if !ok {
		return w, false
	}
	kept, found := item.Find(w)
	age := w.Now - r.At
	switch {
	case u.ByID && (!found || age > generation && !w.Whole):
		return w, false // unknown, released already, or too late
	case !found && age < remembered:
		return w, false // unknown, or released already
	}
	back := Write{Key: w.Key, Update: u, Whole: w.Whole, Drop: kept, Now: w.Now}
	back.ID = NewID("release " + strconv.FormatInt(r.At, 10) + " " + r.ID)
	_, released := item.Find(back)
	return back, !released
}
