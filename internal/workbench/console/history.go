package console

import (
	"slices"

	"github.com/cric-talk/guards/internal/guard"
)

const (
	mostShown    = 100    // answers that the page can show
	mostRequests = 10_000 // requests that a picture can show
)

// A history keeps the last calls. Its size is bounded.
type history struct {
	n        int64     // number of calls so far
	calls    []call    // the last ones, oldest first; the newest has the number n
	requests []decided // oldest first
}

// A decided request is what replay needs of a call.
type decided struct {
	key
	at, count int64
	id        string // the id in its receipt; empty if there is none
}

// A key names what is counted.
type key struct{ user, activity string }

// add adds a call. A reset forgets the requests that it cleared, and a release
// forgets the actions that it gave back, because replay knows neither. A release
// that is too late, or repeated, gives nothing back.
func (h *history) add(c call) {
	h.n++
	h.calls = last(append(h.calls, c), mostShown)
	k := key{c.UserID, c.Activity}
	switch {
	case c.isRequest():
		h.requests = last(append(h.requests, decided{k, c.at, c.Count, c.ReceiptID}), mostRequests)
	case c.err != "":
	case c.Op == guard.Reset:
		h.requests = slices.DeleteFunc(h.requests, func(d decided) bool { return d.key == k })
	case c.Op == guard.Release && c.Used < c.before:
		i := slices.IndexFunc(h.requests, func(d decided) bool { return d.key == k && d.id == c.RequestID && d.id != "" })
		if i < 0 {
			return
		}
		if h.requests[i].count -= c.Count; h.requests[i].count <= 0 {
			h.requests = slices.Delete(h.requests, i, i+1)
		}
	}
}

// last drops elements at the start, so that at most n remain.
func last[E any](s []E, n int) []E { return slices.Delete(s, 0, max(0, len(s)-n)) }

// after returns the calls with a number above n, and the number of the first.
func (h *history) after(n int64) ([]call, int64) {
	first := h.n - int64(len(h.calls)) + 1
	skip := min(max(0, n+1-first), int64(len(h.calls)))
	return slices.Clone(h.calls[skip:]), first + skip
}

// of returns the requests of a user and an activity, oldest first.
func (h *history) of(k key) (all []decided) {
	for _, d := range h.requests {
		if d.key == k {
			all = append(all, d)
		}
	}
	return all
}
