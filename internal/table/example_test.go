package table_test

import (
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/table"
)

// A dry run counts what a sweep would delete.
func ExampleMemory_Sweep() {
	ctx := context.Background()
	store := new(memstore.Store)
	for user, expires := range map[string]int64{"ann": 1_700_000_000, "bob": 1_800_000_000} {
		key := ratelimit.Key{UserID: user, Activity: "create_post", Window: 1}
		if _, _, err := store.Update(ctx, ratelimit.Write{Key: key, ID: ratelimit.NewID("r1"), Expires: expires}); err != nil {
			fmt.Println(err)
		}
	}
	m := table.Memory{Store: store}
	for _, dryRun := range []bool{true, false, false} {
		swept, err := m.Sweep(ctx, table.Sweep{Now: 1_750_000_000, DryRun: dryRun})
		fmt.Printf("%d scanned, %d stale, %d deleted, %v\n", swept.Scanned, swept.Stale, swept.Deleted, err)
	}
	// Output:
	// 2 scanned, 1 stale, 0 deleted, <nil>
	// 2 scanned, 1 stale, 1 deleted, <nil>
	// 1 scanned, 0 stale, 0 deleted, <nil>
}
