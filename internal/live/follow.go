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
	again    = 5 * time.Second       // how long it waits after a look that failed
	patience = time.Second           // how long one look may take
	share    = 20                    // LookAlone waits for at most 1/share of the time
	grace    = 20 * time.Millisecond // how long a finished answer waits for a look, which Lambda would freeze after the response
)

// A Follower keeps an instance's limits up to date. At most every 30 s it reads
// the settings, which is called a look. A look runs at the same time as a
// decision, and its limits apply from the next decision on. If a look fails, or
// finds a document that cannot be read, the last good limits stay in force, and
// the next look is due 5 s later.
type Follower struct {
	Table  Table
	Guards limits.Guards    // the guards whose limits the settings change
	Log    *slog.Logger     // gets a line for each look that fails; nil for none
	Now    func() time.Time // nil means time.Now

	last   atomic.Pointer[Limits]
	mu     sync.Mutex
	looked time.Time     // when the last look began
	rest   time.Duration // how long after that the next one is due
	seen   snapshot      // the document from which last was made
}

// A snapshot is a settings document and its version. The zero snapshot means
// that there is no document.
type snapshot struct {
	document []byte
	version  int64
}

func (s snapshot) equal(o snapshot) bool {
	return s.version == o.version && bytes.Equal(s.document, o.document)
}

// read reads the document.
func read(ctx context.Context, t Table, consistent bool) (s snapshot, err error) {
	s.document, s.version, err = t.Settings(ctx, consistent)
	return s, err
}

// settings returns the content of the document.
func (s snapshot) settings() (Settings, error) {
	if s.version == 0 {
		return Settings{}, nil
	}
	return Parse(s.document)
}

// Limits returns the limits that the last good look found. Before that, and for
// a nil Follower, it returns nil: the code's limits apply.
func (f *Follower) Limits() *Limits {
	if f == nil {
		return nil
	}
	return f.last.Load()
}

// Look starts a look if one is due, beside a request of the caller's own to the
// table. The caller calls wait when its own answer is ready. Wait gives a look
// that is still running 20 ms more, but not longer than ctx lasts.
func (f *Follower) Look(ctx context.Context) (wait func()) { return f.start(ctx, false) }

// LookAlone is Look for a caller that does not ask the table. If all requests of
// an instance are such ones, each look would be frozen before it ends. So wait
// gives the look 1 s, but at most a twentieth of the time since the last look.
// For example, in an outage a look is due after 5 s, and wait takes 250 ms.
func (f *Follower) LookAlone(ctx context.Context) (wait func()) { return f.start(ctx, true) }

// start starts a look if one is due.
func (f *Follower) start(ctx context.Context, alone bool) (wait func()) {
	age, due := f.due()
	if !due {
		return func() {}
	}
	most := grace
	if alone {
		most = max(grace, min(patience, age/share))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := f.look(ctx); err != nil {
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
		case <-time.After(most):
		}
	}
}

// due reports whether it is time for a look. If so, it counts the look as begun,
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
	age = now.Sub(f.looked) // the longest possible time before the first look
	if 0 <= age && age < f.rest {
		return 0, false
	}
	f.looked, f.rest = now, every
	return age, true
}

// Read reads the settings at once, with a consistent read, and follows them.
func (f *Follower) Read(ctx context.Context) error {
	found, err := read(ctx, f.Table, true)
	if err != nil {
		return err
	}
	return f.follow(ctx, found)
}

// look reads the settings with eventual consistency, which costs half as much.
// Such a read may return an older document than the last one, or none. But an
// operator may also have deleted the document or restored an older one. One
// consistent read tells the two cases apart:
//
//	seen  read  consistent read
//	7     8     not needed: 8 is newer
//	7     6     7: the read was stale, 7 stays
//	7     6     6: an operator restored version 6, follow it
//	7     none  none: an operator deleted the document, no live limits
func (f *Follower) look(ctx context.Context) error {
	found, err := read(ctx, f.Table, false)
	if err != nil {
		return err
	}
	f.mu.Lock()
	seen := f.seen
	f.mu.Unlock()
	if found.version <= seen.version && !found.equal(seen) {
		if found, err = read(ctx, f.Table, true); err != nil {
			return err
		}
	}
	return f.follow(ctx, found)
}

// follow applies the document that was found, unless it is applied already.
func (f *Follower) follow(ctx context.Context, found snapshot) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found.equal(f.seen) {
		return nil
	}
	s, err := found.settings()
	if err != nil {
		return err
	}
	l, problems := s.Limits(f.Guards, f.last.Load())
	f.last.Store(l)
	f.seen = found
	for i, err := range problems {
		if e, ok := errors.AsType[*input.ValidationError](err); ok && e.Field == "activity" { // its name may be a user id
			problems[i] = errors.New("an override is of an activity without a limit in the code")
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
