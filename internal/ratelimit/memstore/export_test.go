package memstore

import "github.com/cric-talk/guards/internal/ratelimit"

// Len is how many items are held, expired or not.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// Expires is when the item under k expires, in Unix seconds.
func (s *Store) Expires(k ratelimit.Key) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[k].expires
}
