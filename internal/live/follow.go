package live

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cric-talk/guards/internal/limits"
)

const (
	// every is how old the settings of an instance may be before it looks again.
	every = 30 * time.Second

	// patience is how long one look may take, and grace how long an answer that is
	// ready waits for it: an instance that has answered stands still.
	patience = time.Second
	grace    = 20 * time.Millisecond
)

// A Follower keeps an instance's limits up to date: a look at the table at most
// every 30 s, alongside a decision that goes there anyway. What it brings counts
// from the next decision. A look that fails, or brings what can't be read,
// leaves the last good limits in force.
type Follower struct {
	Table  Table
	Guards []limits.Guard   // whose settings to follow
	Log    *slog.Logger     // a line where a look fails; nil: none
	Now    func() time.Time // nil: time.Now

	last    atomic.Pointer[Limits]
	mu      sync.Mutex
	looked  time.Time // when the last look began
	version int64     // of last
}

// Limits are the limits as last seen; nil, which changes nothing, before the
// first look. A nil Follower follows nothing.
func (f *Follower) Limits() *Limits {
	if f == nil {
		return nil
	}
	return f.last.Load()
}

// Look begins a look if one is due, and returns how to wait for it.
func (f *Follower) Look(ctx context.Context) (wait func()) {
	if f == nil || !f.due() {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := f.look(ctx, false); err != nil {
			f.warn(ctx, "read", err)
		}
	}()
	return func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
		}
	}
}

// due says whether it is time for a look, and takes it as begun.
func (f *Follower) due() bool {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.looked); !f.looked.IsZero() && 0 <= age && age < every {
		return false
	}
	f.looked = now
	return true
}

// Read looks at once, and sees the last settings written.
func (f *Follower) Read(ctx context.Context) error { return f.look(ctx, true) }

func (f *Follower) look(ctx context.Context, consistent bool) error {
	document, version, err := f.Table.Settings(ctx, consistent)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if version <= f.version { // an eventually consistent read may go back
		return nil
	}
	s, err := Parse(document)
	if err != nil {
		return err
	}
	l, err := s.compile(f.Guards, f.last.Load())
	f.last.Store(l)
	f.version = version
	if err != nil {
		f.warn(ctx, "applied", err)
	}
	return nil
}

// warn leaves a line of log on what could not be done with the settings.
func (f *Follower) warn(ctx context.Context, notDone string, err error) {
	if f.Log != nil {
		f.Log.LogAttrs(ctx, slog.LevelWarn, "live limits not followed", slog.String("not", notDone), slog.Any("error", err))
	}
}

func (f *Follower) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}
