package storetest

import (
	"context"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// Metered counts the updates of a store, and the write units that they would cost on
// DynamoDB by the size of the item. It is for virtual time, and for one goroutine.
type Metered struct {
	ratelimit.Store
	Writes int
	Units  float64
	Lose   func() bool // whether the answer to an update is lost; nil: never
}

// Update implements [ratelimit.Store].
func (m *Metered) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	item, done, err := m.Store.Update(ctx, w)
	bytes := 160 + 10*len(item.State)
	for _, set := range item.IDs {
		bytes += 3 + 6*len(set.Elements)
	}
	m.Writes++
	m.Units += float64((bytes + 1023) / 1024)
	if m.Lose != nil && m.Lose() {
		return ratelimit.Item{}, false, &ratelimit.StoreError{Failure: ratelimit.Unknown, What: "lost"}
	}
	return item, done, err
}
