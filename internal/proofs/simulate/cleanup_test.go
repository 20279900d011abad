package simulate_test

import (
	"cmp"
	"context"
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
)

// sweep deletes what has expired, as cleanup does, or a part of it, as DynamoDB's
// TTL does.
func (s *sim) sweep() {
	now := (s.now + s.skew()) / 1000
	if s.chance(2) {
		swept, _ := table.Memory{Store: s.store}.Sweep(context.Background(), table.Sweep{Now: now})
		s.stats["expired items deleted"] += int(swept.Deleted)
		s.line("cleanup deletes %d items", swept.Deleted)
		return
	}
	s.store.DeleteFunc(func(_ ratelimit.Key, expires int64) bool {
		gone := expires < now
		if gone {
			s.stats["expired items deleted"]++
		}
		return gone
	})
}

// erase deletes all items of a user or another subject, as an operator does.
func (s *sim) erase() {
	var keys []ratelimit.Key
	of, ok := s.anOwner()
	if !ok {
		return
	}
	id := of.user
	s.store.DeleteFunc(func(k ratelimit.Key, _ int64) bool {
		if k.UserID == id {
			keys = append(keys, k)
		}
		return k.UserID == id
	})
	slices.SortFunc(keys, func(a, b ratelimit.Key) int {
		return cmp.Or(cmp.Compare(a.Activity, b.Activity), cmp.Compare(a.Window, b.Window))
	})
	for _, k := range keys {
		delete(s.unread, k)
		s.ledger.reset(nil, k)
		s.had("", "erase")
	}
}
