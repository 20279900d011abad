package dynamostore

import (
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// update writes the update expression of w: SET, REMOVE, ADD and DELETE, each
// with a list. It leaves out empty lists.
func (e *expression) update(w ratelimit.Write) {
	e.sets(w)
	e.removes(w)
	e.adds(w)
	if w.Drop.Set != "" {
		e.write("DELETE ", e.attr(w.Drop.Set), " ", e.elements(w.Drop.Mark))
	}
}

func (e *expression) sets(w ratelimit.Write) {
	set := list{keyword: "SET "}
	if w.Expires != 0 {
		set.add(e, expiresAt, " = ", e.number(w.Expires))
		if w.Key.Window != 0 {
			set.add(e, activity, " = ", e.string(w.Key.Activity))
			set.add(e, windowKey, " = ", e.number(w.Key.Window))
			set.add(e, createdAt, " = if_not_exists("+createdAt+", ", e.number(w.Now), ")")
		}
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Set {
			set.add(e, e.attr(a.Attr), " = ", e.number(a.Value))
		}
	}
	set.end(e)
}

func (e *expression) removes(w ratelimit.Write) {
	remove := list{keyword: "REMOVE "}
	for _, name := range w.Forget() {
		remove.add(e, name)
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Delete {
			remove.add(e, e.attr(a.Attr))
		}
	}
	remove.end(e)
}

func (e *expression) adds(w ratelimit.Write) {
	add := list{keyword: "ADD "}
	if into := w.Into(); into.Set != "" {
		add.add(e, e.attr(into.Set), " ", e.elements(into.Mark))
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Add {
			add.add(e, e.attr(a.Attr), " ", e.number(a.Value))
		}
	}
	add.end(e)
}

// A list writes its keyword before its first element and commas between the
// elements.
type list struct {
	keyword string
	begun   bool
}

func (l *list) add(e *expression, parts ...string) {
	if l.begun {
		e.write(", ")
	} else {
		e.write(l.keyword)
	}
	l.begun = true
	e.write(parts...)
}

// end separates the list from the next one.
func (l *list) end(e *expression) {
	if l.begun {
		e.write(" ")
	}
}
