package schema_test

import (
	"context"
	"errors"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A store may be away.
type store struct {
	ratelimit.Store
	away bool
}

var errAway = &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "the table did not answer in time", Err: errors.New("away")}

func (s *store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	if s.away {
		return ratelimit.Item{}, false, errAway
	}
	return s.Store.Update(ctx, w)
}

func (s *store) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	if s.away {
		return ratelimit.Item{}, errAway
	}
	return s.Store.Read(ctx, k)
}
