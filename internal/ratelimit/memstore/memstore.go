// Package memstore keeps a limiter's items in memory. It is for development,
// tests and applications that run as one process.
package memstore

import (
	"context"
	"maps"
	"sync"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A Store keeps items in memory. The zero Store is empty and ready to use. It
// is safe for concurrent use.
//
// A Store drops expired items each time the number of its items has doubled. So
// it holds at most about twice as many items as still matter.
type Store struct {
	mu    sync.Mutex
	items map[ratelimit.Key]stored
	full  int // with this number of items, expired ones are dropped
}

type stored struct {
	ratelimit.Item
	expires int64 // Unix seconds
}

// minSweep is the lowest number of items that makes a Store look for expired
// ones.
const minSweep = 1024

// Update implements [ratelimit.Store].
func (s *Store) Update(_ context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.items[w.Key]
	item, done := was.Write(w)
	if done {
		expires := w.Expires
		if expires == 0 {
			expires = was.expires
		}
		s.put(w.Key, stored{item, expires}, w.Now)
	}
	return item, done, nil
}

// Read implements [ratelimit.Store].
func (s *Store) Read(_ context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[k].Item, nil
}

// Delete implements [ratelimit.Store].
func (s *Store) Delete(_ context.Context, k ratelimit.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, k)
	return nil
}

// DeleteFunc deletes each item if del returns true for it. It calls del with
// the item's key and expiry (Unix seconds). del must not use the store.
func (s *Store) DeleteFunc(del func(k ratelimit.Key, expires int64) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.items, func(k ratelimit.Key, v stored) bool { return del(k, v.expires) })
}

// put keeps an item. Each time the number of items has doubled, it drops those
// that expired before now (Unix milliseconds).
func (s *Store) put(k ratelimit.Key, v stored, now int64) {
	if s.items == nil {
		s.items, s.full = make(map[ratelimit.Key]stored), minSweep
	}
	s.items[k] = v
	if len(s.items) < s.full {
		return
	}
	maps.DeleteFunc(s.items, func(_ ratelimit.Key, v stored) bool { return v.expires < now/1000 })
	s.full = max(minSweep, 2*len(s.items))
}
