package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cric-talk/guards/internal/crash"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/retry"
)

const (
	refreshEvery = 30 * time.Second      // how long an instance uses its settings before it reads the table again
	retryAfter   = 5 * time.Second       // how long it waits after a read that failed, or that has no answer yet
	readTimeout  = time.Second           // how long one read may take, without the time in a freeze
	maxShare     = 20                    // wait takes at most 1/maxShare of the time, or minWait if that is longer
	minWait      = 20 * time.Millisecond // how long a finished answer waits for a read, which Lambda would freeze after the response
)

// A Source holds two documents: the settings, and who is blocked.
type Source interface {
	// Settings returns the document of the settings and what is beside it. It returns the
	// zero Stored only if there is no document. A read that is not consistent may return
	// an older document.
	Settings(ctx context.Context, consistent bool) (Stored, error)

	// Blocks does the same for the document of blocks. The table keeps nothing beside
	// it.
	Blocks(ctx context.Context, consistent bool) (Stored, error)
}

// A Follower keeps an instance's limits up to date. At most every 30 s it reads
// both documents while a decision is made, and they apply from the next one on. If a read
// fails, the last good document stays in force, and the next read is due 5 s later.
//
// Lambda freezes an instance after it responds, even in the middle of a read. The read
// goes on when the instance does:
//
//	 0.00 s  a decision begins a read, answers after 10 ms, and waits 20 ms for the read
//	 0.03 s  Lambda freezes the instance
//	 0.05 s  the answer of the table arrives, and nobody reads it
//	40.00 s  the next decision first gives the read up to 20 ms, and uses what it found
type Follower struct {
	Source Source
	Guards limits.Guards    // the guards whose limits the settings change
	Log    *slog.Logger     // gets a line for each read that fails; nil for none
	Now    func() time.Time // nil means time.Now

	last   atomic.Pointer[Limits]
	mu     sync.Mutex
	began  time.Time     // when the last read began
	rest   time.Duration // how long after that the next one is due
	reads  atomic.Int64  // how many have begun
	latest *read         // in the background; nil: none has begun, or CatchUp has waited for it

	settings, blocks followed
}

// A followed is what a follower knows about one of the documents.
type followed struct {
	used int64  // the number of the latest read that was followed
	seen Stored // what it found
}

// A document is the settings or the blocks, and how a follower reads it.
type document struct {
	*followed
	read  func(ctx context.Context, consistent bool) (Stored, error)
	apply func(context.Context, Stored) error
}

// A read is one read in the background.
type read struct {
	number int64         // 1 for the follower's first one
	age    time.Duration // how long after the read before it began; the longest possible time for the first one
	done   chan struct{} // closed when it has ended
}

// wait waits until the read has ended, but not longer than ctx or longest last.
func (r *read) wait(ctx context.Context, longest time.Duration) {
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-time.After(longest):
	}
}

func (s Stored) equal(o Stored) bool {
	return s.Version == o.Version && bytes.Equal(s.Document, o.Document) && bytes.Equal(s.Trials, o.Trials) && bytes.Equal(s.Ends, o.Ends)
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
	r := f.begin()
	if r == nil {
		return func() {}
	}
	go func() {
		defer crash.Contain()
		defer close(r.done)
		ctx, stop := retry.Awake(context.WithoutCancel(ctx), readTimeout)
		defer stop()
		f.warn(ctx, "read", f.refresh(ctx, r.number))
	}()
	return func() { r.wait(ctx, max(minWait, min(longest, r.age/maxShare))) }
}

// begin begins a read, if it is time for one. Otherwise it returns nil.
func (f *Follower) begin() *read {
	if f == nil {
		return nil
	}
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	age := now.Sub(f.began)
	if 0 <= age && age < f.rest {
		return nil
	}
	f.began, f.rest = now, retryAfter
	f.latest = &read{number: f.reads.Add(1), age: age, done: make(chan struct{})}
	return f.latest
}

// CatchUp waits for a read that was interrupted by a freeze, so that the decision which
// ends the freeze already uses what the read found. It waits at most 20 ms, not longer
// than ctx lasts, and once for each read. Usually the answer has come long ago.
func (f *Follower) CatchUp(ctx context.Context) {
	if r := f.interrupted(); r != nil {
		r.wait(ctx, minWait)
	}
}

// interrupted returns the latest read, if by the clock it has taken longer than it may,
// and if no decision has waited for it since then. Otherwise it returns nil.
func (f *Follower) interrupted() *read {
	if f == nil {
		return nil
	}
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.latest
	if r == nil || now.Sub(f.began).Abs() <= readTimeout {
		return nil
	}
	f.latest = nil
	return r
}

// now returns the time without a monotonic reading, because the monotonic clock can stand
// still while Lambda freezes the process.
func (f *Follower) now() time.Time {
	if f.Now != nil {
		return f.Now().Round(0)
	}
	return time.Now().Round(0)
}

// Read reads the documents at once, with consistent reads, and follows them.
func (f *Follower) Read(ctx context.Context) error {
	return f.both(ctx, f.reads.Add(1), true)
}

// refresh reads the documents with eventual consistency, which costs half as much.
func (f *Follower) refresh(ctx context.Context, number int64) error {
	err := f.both(ctx, number, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && number == f.reads.Load() {
		f.rest = refreshEvery
	}
	return err
}

// both follows the two documents at the same time.
func (f *Follower) both(ctx context.Context, number int64, consistent bool) error {
	blocks := make(chan error, 1)
	go func() {
		defer crash.Contain()
		defer close(blocks)
		blocks <- f.follow(ctx, document{&f.blocks, f.Source.Blocks, f.applyBlocks}, number, consistent)
	}()
	settings := f.follow(ctx, document{&f.settings, f.Source.Settings, f.apply}, number, consistent)
	return errors.Join(settings, <-blocks)
}

// follow reads a document. It applies the document unless it is applied already, or a read
// with a higher number ended before this one.
//
// If a read that is not consistent finds an older document than the last one, or none, it may
// be stale, or an operator has restored or deleted the document. A consistent read tells which.
func (f *Follower) follow(ctx context.Context, d document, number int64, consistent bool) error {
	found, err := d.read(ctx, consistent)
	f.mu.Lock()
	seen := d.seen
	f.mu.Unlock()
	if err == nil && !consistent && found.Version <= seen.Version && !found.equal(seen) {
		found, err = d.read(ctx, true)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if number < d.used {
		return nil
	}
	if !found.equal(d.seen) {
		if err := d.apply(ctx, found); err != nil {
			return err
		}
		d.seen = found
	}
	d.used = number
	return nil
}

// apply applies the document of the settings. The caller holds f.mu.
func (f *Follower) apply(ctx context.Context, found Stored) error {
	s, err := found.Settings()
	if err != nil {
		return err
	}
	l, problems := s.Limits(f.Guards, f.last.Load().At(f.now()))
	f.last.Store(l)
	if n := len(s.Damaged.Problems); n > 0 {
		problems = append(problems, fmt.Errorf("%d of the entries in the document of live limits can't be read", n))
	}
	for i, err := range problems {
		if e, ok := errors.AsType[*input.ValidationError](err); ok && (e.Field == "activity" || e.Field == "subject" || e.Field == "group") { // its name may be a user id
			problems[i] = errors.New("an override is of an activity or a group without a limit in the code")
		}
	}
	f.warn(ctx, "applied", errors.Join(problems...))
	return nil
}

// applyBlocks applies the document of blocks. The caller holds f.mu.
func (f *Follower) applyBlocks(ctx context.Context, found Stored) error {
	b, err := found.Blocks()
	if err != nil {
		return err
	}
	f.last.Store(f.last.Load().With(b))
	if n := len(b.Damaged.Problems); n > 0 {
		f.warn(ctx, "applied", fmt.Errorf("%d of the entries in the document of blocks can't be read", n))
	}
	return nil
}

// warn logs that the settings were not read, or not fully applied, unless err is nil.
func (f *Follower) warn(ctx context.Context, notDone string, err error) {
	if err != nil && f.Log != nil {
		f.Log.LogAttrs(ctx, slog.LevelWarn, "live limits not followed", slog.String("not", notDone), slog.Any("error", err))
	}
}
