package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// early is how long before its end a slot is lost. Until then another caller can't
// get it, even if the clocks of the guard's instances differ.
const early = 2 * time.Second

// ErrSlotLost is the cause of a Slot's context that ended because the slot was lost.
var ErrSlotLost = errors.New("the slot is lost")

// A Slot is one of the few places of an activity whose limit is a log. For example,
// log 3/10m lets at most three exports of a user run at once:
//
//	slot, err := guards.Slot(ctx, "export", client.Request{UserID: userID})
//	switch {
//	case err != nil:
//		return err
//	case !slot.Allowed:
//		return tooMany(slot.Message)
//	}
//	defer slot.Release(ctx)
//	return export(slot.Context())
//
// The slot renews itself until Release is called or the context of the caller ends. A
// slot without a receipt holds nothing: it is not renewed, not released and never
// lost. So it is in an outage, and if the decision is unlimited, bypassed, shadow or a
// duplicate. If a renewal has such an answer, for example while the guard is switched
// off, the slot keeps its last receipt, and its end.
//
// A Slot is safe for concurrent use.
type Slot struct {
	Decision // of the check

	guards *Guards
	ctx    context.Context
	end    context.CancelCauseFunc

	mu      sync.Mutex
	receipt Request
	held    bool // whether there is something to release
	lost    bool
	lostAt  time.Time   // zero: never
	loss    *time.Timer // at lostAt
}

// Slot checks, and keeps what the check counted until Release. Like Check, it returns
// a refusal as a Decision, and OnOutage decides in an outage. If the activity's limit
// is not a log, the error is an ErrValidation.
func (g *Guards) Slot(ctx context.Context, activity string, r Request) (*Slot, error) {
	sent := time.Now()
	d, err := g.Check(ctx, activity, r)
	if err != nil {
		return nil, err
	}
	s := &Slot{Decision: d, guards: g, receipt: d.receipt(d.Granted), held: d.Allowed && d.releasable()}
	s.ctx, s.end = context.WithCancelCause(ctx)
	if !s.Allowed {
		s.end(context.Canceled) // the app need not call Release
	}
	if !s.held {
		return s, nil
	}
	if d.HeldUntil == 0 {
		s.Release(ctx)
		return nil, g.target(d.Guard).validation("the limit of " + d.Activity + " is not a log, so it has no slots")
	}
	third := s.hold(sent, d)
	g.slots.Store(d.id(), true)
	go s.keep(sent.Add(third))
	return s, nil
}

// Context returns the context for the work. It ends when the slot is lost, when it is
// released, and when the context of the caller ends. That of a refused slot has ended.
func (s *Slot) Context() context.Context { return s.ctx }

// Lost reports whether the work must stop, because somebody else may get the slot: it
// has expired, or no renewal got through until 2 s before its end.
func (s *Slot) Lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isLost()
}

func (s *Slot) isLost() bool {
	s.lost = s.lost || !s.lostAt.IsZero() && elapsed(s.lostAt, time.Now()) >= 0
	return s.lost
}

// Release frees the slot. If that fails, Release tries once more, even if ctx has
// ended. A second failure goes to Options.Warn. Further calls have no effect.
func (s *Slot) Release(ctx context.Context) {
	r, held := s.stop()
	s.end(context.Canceled)
	if !held {
		return
	}
	ctx = context.WithoutCancel(ctx)
	_, err := s.guards.Release(ctx, s.path(), r)
	if err != nil {
		sleep(ctx, closedFor+rand.N(50*time.Millisecond)) // before, the breaker would refuse
		_, err = s.guards.Release(ctx, s.path(), r)
	}
	if err != nil {
		s.guards.options.Warn(err)
	}
}

// stop ends the holding. It returns the receipt, and whether there is something to
// release.
func (s *Slot) stop() (r Request, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isLost()
	held, s.held, s.lostAt = s.held, false, time.Time{}
	if s.loss != nil {
		s.loss.Stop()
	}
	return s.receipt, held
}

// keep renews the slot at next, and then after each third of the time that it lasts.
// If a renewal fails, keep repeats it at once, and then once a second.
func (s *Slot) keep(next time.Time) {
	defer s.guards.slots.Delete(s.id())
	var sent time.Time // the first request with this receipt; a later one gets the answer to the first
	var pause time.Duration
	for sleep(s.ctx, time.Until(next)) {
		if sent.IsZero() {
			sent = time.Now()
		}
		s.mu.Lock()
		r := s.receipt
		s.mu.Unlock()
		d, err := s.guards.Renew(s.ctx, s.path(), r)
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			s.guards.warn(err)
			next, pause = time.Now().Add(pause+rand.N(100*time.Millisecond)), closedFor
		case !d.Allowed:
			s.stop()
			s.lose()
			return
		case d.At == 0 || d.HeldUntil == 0: // nothing is limited now, but that can end before the slot does
			s.mu.Lock()
			left := time.Until(s.lostAt)
			s.mu.Unlock()
			next, sent, pause = time.Now().Add(max(closedFor, left/3)), time.Time{}, 0
		default:
			next, sent, pause = sent.Add(s.hold(sent, d)), time.Time{}, 0
		}
	}
}

// hold keeps the slot for as long as an answer says, and returns a third of that time.
// The time counts from when the request was sent, because the answer may have come
// late. The guard's clock need not agree with this machine's.
func (s *Slot) hold(sent time.Time, d Decision) (third time.Duration) {
	lasts := time.Duration(d.HeldUntil-d.At) * time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held && !s.isLost() {
		s.receipt.At, s.lostAt = d.At, sent.Add(lasts-early)
		if s.loss == nil {
			s.loss = time.AfterFunc(time.Until(s.lostAt), s.lose)
		} else {
			s.loss.Reset(time.Until(s.lostAt))
		}
	}
	return lasts / 3
}

// lose tells the work to stop.
func (s *Slot) lose() {
	s.mu.Lock()
	s.lost = true
	s.mu.Unlock()
	s.end(ErrSlotLost)
}

// Settle gives back what a check granted and the app did not use, with one release.
// For example, an app reserves 4,000 tokens with a Count of 4,000, and settles for the
// 1,400 that it used. Settle sends no request if nothing is left or if the decision has no
// receipt. The guard gives back the actions of a check once, so a second Settle changes
// nothing, and after an ErrOutage it can be tried again. A negative number is an
// ErrValidation. So is the decision of an open Slot: it would be lost, because it can only
// be released as a whole.
func (g *Guards) Settle(ctx context.Context, d Decision, used int64) error {
	switch {
	case used < 0:
		return g.target(d.Guard).validation(fmt.Sprintf("used is %d, want at least 0", used))
	case used >= d.Granted || !d.releasable():
		return nil
	}
	if _, open := g.slots.Load(d.id()); open {
		return g.target(d.Guard).validation("the decision is that of a slot, which can't be settled: release the slot")
	}
	_, err := g.Release(ctx, d.path(), d.receipt(d.Granted-used))
	return err
}
