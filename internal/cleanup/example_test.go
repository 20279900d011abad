package cleanup_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/table"
)

// A dry run shows what cleanup would delete. Then ann is erased: everything
// that the table holds about her is deleted, expired or not.
func ExampleCleanup_Run() {
	ctx := context.Background()
	store := new(memstore.Store)
	for window, expires := range []int64{1_700_000_000, 1_800_000_000} {
		key := ratelimit.Key{UserID: "ann", Activity: "create_post", Window: int64(window) + 1}
		if _, _, err := store.Update(ctx, ratelimit.Write{Key: key, ID: ratelimit.NewID("r1"), Expires: expires}); err != nil {
			fmt.Println(err)
		}
	}
	c := &cleanup.Cleanup{
		Table: table.Memory{Store: store},
		Now:   func() time.Time { return time.Unix(1_750_000_000, 0) },
	}
	for _, r := range []cleanup.Request{{DryRun: true}, {UserID: "ann"}, {DryRun: true}} {
		a, err := c.Run(ctx, r)
		fmt.Printf("%d scanned, %d stale, %d deleted, finished: %v, %v\n", a.Scanned, a.Stale, a.Deleted, a.Finished, err)
	}
	// Output:
	// 2 scanned, 1 stale, 0 deleted, finished: true, <nil>
	// 2 scanned, 2 stale, 2 deleted, finished: true, <nil>
	// 0 scanned, 0 stale, 0 deleted, finished: true, <nil>
}
