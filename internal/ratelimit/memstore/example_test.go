package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A program of one process needs no database: it keeps the counts in memory.
func Example() {
	l := &ratelimit.Limiter{
		Store: new(memstore.Store),
		Now:   func() time.Time { return time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) },
	}
	for i, user := range []string{"ann", "ann", "bob"} {
		d, err := l.Check(context.Background(), ratelimit.Request{
			UserID: user, Activity: "export", Policy: policy.Must("bucket 1/10s"), Count: 1, ID: fmt.Sprint("request ", i),
		})
		fmt.Println(user, d.Allowed, d.Wait, err)
	}
	// Output:
	// ann true 0s <nil>
	// ann false 10s <nil>
	// bob true 0s <nil>
}
