package policy

import (
	"fmt"
	"slices"
	"testing"
)

// AddToggle adds a kind that no other code knows to the list of kinds, until
// the test ends. This is all that a new kind takes.
func AddToggle(t *testing.T) {
	t.Helper()
	before := kinds
	kinds = append(slices.Clone(kinds), Kind{Name: "toggle", make: makeToggle, Examples: []string{"toggle 1/10s", "toggle 1/7ms"}})
	t.Cleanup(func() { kinds = before })
}

// toggle allows one action in a window of the clock, and none in the next
// window. So of requests that come once a window it allows every other one.
//
// Its state is t, the number of the last window with an action.
type toggle struct{ window int64 }

func makeToggle(r Rate, _ bool) (kind, error) {
	if r.Limit != 1 {
		return nil, fmt.Errorf("limit is %d, want 1 for a toggle", r.Limit)
	}
	return toggle{r.Window.Milliseconds()}, nil
}

func (p toggle) item(now int64, _ State) (window, expires int64) {
	return 0, expiry((now/p.window+2)*p.window, ClockSlack)
}

func (p toggle) stays() (least, most int64) { return p.window, 2 * p.window }

func (p toggle) take(now, n int64, _ uint64, s State) (Update, bool) {
	last := now/p.window - 2 // the latest window that allows one more
	return Update{
		If:   [][]Term{{AtMost("t", last)}},
		Acts: []Act{{Set, "t", now / p.window}},
	}, n == 1 && s.Get("t") <= last
}

func (p toggle) undo(_, at, n int64, s State) (Update, bool) {
	return Update{
		If:   [][]Term{{Exactly("t", at/p.window)}},
		Acts: []Act{{Verb: Delete, Attr: "t"}},
	}, n == 1 && s.Get("t") == at/p.window
}

func (p toggle) counted(now int64, _ State) int64 { return now }

func (p toggle) read(now, n int64, s State) Reading {
	r := Reading{Limit: 1, Window: millis(2 * p.window), Remaining: 1, ResetAt: now}
	if free := (s.Get("t") + 2) * p.window; free > now {
		r.Used, r.Remaining, r.ResetAt = 1, 0, free
	}
	if n > 0 {
		r.Wait = millis(r.ResetAt - now)
	}
	return r
}
