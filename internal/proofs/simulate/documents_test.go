package simulate_test

import (
	"iter"
	"strconv"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
)

// A settled document is in force from a time on.
type settled struct {
	live.Stored
	since int64
	set   map[string]string // the live limits and modes, by their names; or when each block ends
}

// millis reads a time of a document; 0: it has none.
func millis(text string) int64 {
	at, _ := strconv.ParseInt(text, 10, 64)
	return at
}

// A history has all versions of a document, the first one first.
type history []settled

// inForce returns the version in force at a time.
func (h history) inForce(at int64) settled {
	i := len(h) - 1
	for i > 0 && h[i].since > at {
		i--
	}
	return h[i]
}

// change adds a version, if the one before is the latest.
func (h *history) change(now, before int64, after live.Stored) error {
	if before != h.inForce(now).Version {
		return liveedit.ErrConflict
	}
	*h = append(*h, settled{since: now, Stored: after})
	return nil
}

// between yields the versions that were in force at some time of d.
func (h history) between(d *documents) iter.Seq[settled] {
	return func(yield func(settled) bool) {
		for i, v := range h {
			ended := i+1 < len(h) && h[i+1].since <= d.since
			if v.since <= d.until && !ended && !yield(v) {
				return
			}
		}
	}
}

// documents are what an instance has to follow: one of those that were in force
// shortly before its last good look.
type documents struct {
	since, until int64
	read, failed bool  // the look at hand
	clock        int64 // when it last looked, by its own clock
}
