package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// spoiled is a store that gives some attributes of every item the wrong type. No
// condition holds on them.
type spoiled struct {
	Store
	attrs []string
	sent  int
}

func (s *spoiled) Update(ctx context.Context, w Write) (Item, bool, error) {
	s.sent++
	for attr := range w.Update.Attributes {
		if slices.Contains(s.attrs, attr) {
			item, err := s.Store.Read(ctx, w.Key)
			return s.spoil(item), false, err
		}
	}
	item, done, err := s.Store.Update(ctx, w)
	return s.spoil(item), done, err
}

func (s *spoiled) Read(ctx context.Context, k Key) (Item, error) {
	s.sent++
	item, err := s.Store.Read(ctx, k)
	return s.spoil(item), err
}

func (s *spoiled) spoil(item Item) Item {
	item.Unread = s.attrs
	var without policy.Update
	for _, attr := range s.attrs {
		without.Acts = append(without.Acts, policy.Act{Verb: policy.Delete, Attr: attr})
	}
	item.State = without.Apply(item.State)
	return item
}

// attributesOf returns all attributes that p uses in an empty item.
func attributesOf(p policy.Policy) []string {
	u, _ := p.Take(start.UnixMilli(), p.Max(), 1, nil)
	return slices.Compact(slices.Sorted(u.Attributes))
}

// A decision about an unreadable item ends after at most two requests. It
// concerns only that item, so the circuit breaker stays closed.
func TestAnUnreadableItemEndsAfterTwoRequests(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		p := s.policy()
		for _, counted := range []bool{false, true} {
			for _, verb := range []int{0, 1, 2} {
				store := &spoiled{Store: new(memstore.Store)}
				l := &Limiter{Store: store, Timeout: time.Second, Memory: NewMemory(mib), Now: newClock().now}
				r := request(p, "a", 1)
				if counted {
					r.At = mustCheck(t, l, r).At
				}
				r.Fallback = false
				l.Memory = NewMemory(mib) // a cold instance
				store.attrs, store.sent = attributesOf(p), 0
				if verb == 0 {
					r.ID = "b"
				}
				if verb == 2 && p.Queues() {
					continue // a release of a place reads no attribute
				}
				_, err := verbs(l)[verb](t.Context(), r)
				e, ok := errors.AsType[*StoreError](err)
				if !ok || e.Failure != Unreadable || !slices.Contains(store.attrs, e.Attr) {
					t.Errorf("verb %d, counted before: %v: the error is %#v, want unreadable with the attribute", verb, counted, err)
				}
				if store.sent > 2 {
					t.Errorf("verb %d, counted before: %v: %d requests, want at most 2", verb, counted, store.sent)
				}
				if l.CircuitOpen() {
					t.Errorf("verb %d: the circuit breaker is open, want it closed", verb)
				}
			}
		}
	})
}
