package dynamostore

import (
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// update writes the update expression of w: SET, REMOVE, ADD and DELETE, each
// with a list. It leaves out empty lists.
func (e *expression) update(w ratelimit.Write) {
	e.list("SET ")
	if w.Expires != 0 {
		e.element(ExpiresAt, " = ", e.number(w.Expires))
		if w.Key.Window != 0 {
			e.element(activity, " = ", e.string(w.Key.Activity))
			e.element(windowKey, " = ", e.number(w.Key.Window))
			e.element(createdAt, " = if_not_exists("+createdAt+", ", e.number(w.Now), ")")
		}
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Set {
			e.element(e.attr(a.Attr), " = ", e.number(a.Value))
		}
	}
	e.list("REMOVE ")
	for _, name := range w.Forget() {
		e.element(name)
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Delete {
			e.element(e.attr(a.Attr))
		}
	}
	e.list("ADD ")
	if into := w.Into(); into.Set != "" {
		e.element(e.attr(into.Set), " ", e.elements(into.Mark))
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Add {
			e.element(e.attr(a.Attr), " ", e.number(a.Value))
		}
	}
	e.list("DELETE ")
	if w.Drop.Set != "" {
		e.element(e.attr(w.Drop.Set), " ", e.elements(w.Drop.Mark))
	}
}

// list begins a list. Its keyword is written with its first element, so an empty
// list leaves no trace.
func (e *expression) list(keyword string) {
	if e.before == comma { // the list before this one has elements
		e.write(" ")
	}
	e.before = keyword
}

// element writes an element of the list.
func (e *expression) element(parts ...string) {
	e.write(e.before)
	e.write(parts...)
	e.before = comma
}

const comma = ", "
