package dynamostore

import (
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// update appends what w changes: SET, REMOVE, ADD and DELETE, each with a list.
func (e *expression) update(text []byte, w ratelimit.Write) []byte {
	text = e.sets(text, w)
	text = e.removes(text, w)
	text = e.adds(text, w)
	if w.Drop.Set != "" {
		text = join(text, 0, "", "DELETE ", e.attr(w.Drop.Set), " ", e.value(elements(w.Drop.Mark)))
	}
	return text
}

func (e *expression) sets(text []byte, w ratelimit.Write) []byte {
	i := list{keyword: "SET "}
	if w.Expires != 0 {
		text = i.append(text, expiresAt, " = ", e.number(w.Expires))
		if w.Key.Window != 0 {
			text = i.append(text, activity, " = ", e.value(textValue(w.Key.Activity)))
			text = i.append(text, windowKey, " = ", e.number(w.Key.Window))
			text = i.append(text, createdAt, " = if_not_exists("+createdAt+", ", e.number(w.Now), ")")
		}
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Set {
			text = i.append(text, e.attr(a.Attr), " = ", e.number(a.Value))
		}
	}
	return i.end(text)
}

func (e *expression) removes(text []byte, w ratelimit.Write) []byte {
	i := list{keyword: "REMOVE "}
	for _, name := range w.Forget() {
		text = i.append(text, name)
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Delete {
			text = i.append(text, e.attr(a.Attr))
		}
	}
	return i.end(text)
}

func (e *expression) adds(text []byte, w ratelimit.Write) []byte {
	i := list{keyword: "ADD "}
	if into := w.Into(); into.Set != "" {
		text = i.append(text, e.attr(into.Set), " ", e.value(elements(into.Mark)))
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Add {
			text = i.append(text, e.attr(a.Attr), " ", e.number(a.Value))
		}
	}
	return i.end(text)
}

// A list appends its keyword before its first element and commas between the
// elements.
type list struct {
	keyword string
	length  int
}

func (l *list) append(text []byte, parts ...string) []byte {
	if l.length == 0 {
		text = append(text, l.keyword...)
	}
	l.length++
	return join(text, l.length-1, ", ", parts...)
}

// end separates the list from the next one.
func (l *list) end(text []byte) []byte {
	if l.length == 0 {
		return text
	}
	return append(text, ' ')
}
