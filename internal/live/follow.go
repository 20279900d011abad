package live

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
)

const (
	every    = 30 * time.Second      // how long an instance uses its settings before it reads the table again
	again    = 5 * time.Second       // how long it waits after a read that failed
	patience = time.Second           // how long one read may take
	share    = 20                    // wait takes at most 1/share of the time, or grace if that is longer
	grace    = 20 * time.Millisecond // how long a finished answer waits for a read, which Lambda would freeze after the response
)

// A Source holds the settings document.
type Source interface {
	// Settings returns the document and what is beside it. It returns the zero Stored
	// only if there is no document. A read that is not consistent may return an older
	// document.
	Settings(ctx context.Context, consistent bool) (Stored, error)
}

// A Follower keeps an instance's limits up to date. At most every 30 s it reads
// the settings while a decision is made, and the limits apply from the next one on. If a
// read fails, the last good limits stay in force, and the next read is due 5 s later.
type Follower struct {
	Source Source
	Guards limits.Guards    // the guards whose limits the settings change
	Log    *slog.Logger     // gets a line for each read that fails; nil for none
	Now    func() time.Time // nil means time.Now

	last  atomic.Pointer[Limits]
	mu    sync.Mutex
	began time.Time     // when the last read began
	rest  time.Duration // how long after that the next one is due
	seen  Stored        // from which last was made
}

func (s Stored) equal(o Stored) bool {
	return s.Version == o.Version && bytes.Equal(s.Document, o.Document) && bytes.Equal(s.Trials, o.Trials)
}

// Limits returns the limits that the last good read found. Before that, and for
// a nil Follower, it returns nil: the code's limits apply.
func (f *Follower) Limits() *Limits {
	if f == nil {
		return nil
	}
	return f.last.Load()
}

// Refresh reads the settings in the background if a read is due. The caller calls
// wait when its own answer is ready. Wait gives a read that is still running at
// most 20 ms more, and not longer than ctx lasts.
//
// For a caller that does not ask the table itself, 20 ms could always be too short, and
// Lambda would freeze each read before it ends. Such a caller passes the longest time
// that it can wait. Wait then takes up to that, but at most a twentieth of the time since
// the last read: in an outage a read is due after 5 s, and wait takes 250 ms.
func (f *Follower) Refresh(ctx context.Context, longest time.Duration) (wait func()) {
	age, due := f.due()
	if !due {
		return func() {}
	}
	longest = max(grace, min(longest, age/share))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := f.refresh(ctx); err != nil {
			f.warn(ctx, "read", err)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.rest = again
		}
	}()
	return func() {
		select {
		case <-done:
		case <-ctx.Done():
		case <-time.After(longest):
		}
	}
}

// due reports whether it is time for a read. If so, it counts the read as begun,
// and returns how long ago the one before began.
func (f *Follower) due() (age time.Duration, ok bool) {
	if f == nil {
		return 0, false
	}
	now := time.Now()
	if f.Now != nil {
		now = f.Now()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	age = now.Sub(f.began) // the longest possible time before the first read
	if 0 <= age && age < f.rest {
		return 0, false
	}
	f.began, f.rest = now, every
	return age, true
}

// Read reads the settings at once, with a consistent read, and follows them.
func (f *Follower) Read(ctx context.Context) error {
	found, err := f.Source.Settings(ctx, true)
	if err != nil {
		return err
	}
	return f.follow(ctx, found)
}

// refresh reads the settings with eventual consistency, which costs half as much. If it
// finds an older document than the last one, or none, the read may be stale, or an
// operator has restored or deleted the document. A consistent read tells which.
func (f *Follower) refresh(ctx context.Context) error {
	found, err := f.Source.Settings(ctx, false)
	if err != nil {
		return err
	}
	f.mu.Lock()
	seen := f.seen
	f.mu.Unlock()
	if found.Version <= seen.Version && !found.equal(seen) {
		if found, err = f.Source.Settings(ctx, true); err != nil {
			return err
		}
	}
	return f.follow(ctx, found)
}

// follow applies the document that was found, unless it is applied already.
func (f *Follower) follow(ctx context.Context, found Stored) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found.equal(f.seen) {
		return nil
	}
	s, err := found.Settings()
	if err != nil {
		return err
	}
	l, problems := s.Limits(f.Guards, f.last.Load())
	f.last.Store(l)
	f.seen = found
	for i, err := range problems {
		if e, ok := errors.AsType[*input.ValidationError](err); ok && (e.Field == "activity" || e.Field == "group") { // its name may be a user id
			problems[i] = errors.New("an override is of an activity or a group without a limit in the code")
		}
	}
	if len(problems) > 0 {
		f.warn(ctx, "applied", errors.Join(problems...))
	}
	return nil
}

// warn logs that the settings were not read, or not fully applied.
func (f *Follower) warn(ctx context.Context, notDone string, err error) {
	if f.Log != nil {
		f.Log.LogAttrs(ctx, slog.LevelWarn, "live limits not followed", slog.String("not", notDone), slog.Any("error", err))
	}
}
