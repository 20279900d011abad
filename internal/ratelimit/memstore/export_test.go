package memstore

import "github.com/cric-talk/guards/internal/ratelimit"

// Len returns how many items the store holds, expired ones included.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// Expires returns when the item under k expires, in Unix seconds.
func (s *Store) Expires(k ratelimit.Key) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[k].expires
}
