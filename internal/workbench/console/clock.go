package console

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"
)

// A Clock is a clock that can be moved ahead. Create one with NewClock. It is
// safe for concurrent use.
type Clock struct {
	real  func() time.Time
	ahead atomic.Int64 // nanoseconds, not negative
}

// NewClock returns a clock that shows what now returns.
func NewClock(now func() time.Time) *Clock { return &Clock{real: now} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time { return c.real().Add(c.Ahead()) }

// Ahead returns how far the clock is ahead.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// farthest is how far ahead a clock can be. No window is longer.
const farthest = 366 * 24 * time.Hour

// Move moves the clock ahead by d. It returns false, and moves nothing, if d is
// negative or the clock would be too far ahead.
func (c *Clock) Move(d time.Duration) bool {
	for {
		before := c.ahead.Load()
		if d < 0 || d > farthest-time.Duration(before) {
			return false
		}
		if c.ahead.CompareAndSwap(before, before+int64(d)) {
			return true
		}
	}
}

// Reset returns the clock to the real time.
func (c *Clock) Reset() { c.ahead.Store(0) }

// serveClock moves the guards' clock. The body is {"move": MS} for further
// ahead, {"to": MS} for a time, or {"reset": true}. The response is a
// clockView.
func (c *Console) serveClock(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Move, To int64
		Reset    bool
	}
	if !decode(w, r, &body) {
		return
	}
	if c.Fixed != "" {
		http.Error(w, c.Fixed, http.StatusConflict)
		return
	}
	if body.To != 0 {
		body.Move = max(0, body.To-c.Clock.Now().UnixMilli())
	}
	switch {
	case body.Reset:
		c.Clock.Reset()
	case body.Move > farthest.Milliseconds() || !c.Clock.Move(time.Duration(body.Move)*time.Millisecond):
		http.Error(w, "The clock can only go ahead, and by at most 366 days. Reset it to return to the real time.", http.StatusBadRequest)
		return
	}
	c.read(r.Context(), true)
	c.mu.Lock()
	c.notify()
	c.mu.Unlock()
	text, err := json.Marshal(c.clock())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}
