package table_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// User returns what the store wrote, under the keys that the store used. Ids of
// every allowed length can be read and erased.
func TestUser(t *testing.T) {
	store := dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	d := New(store.Table())
	for _, length := range []int{1, 36, 37, 128} {
		user := strings.Repeat("u", length)
		want := map[ratelimit.Key]ratelimit.Item{}
		for _, k := range []ratelimit.Key{
			{UserID: user, Activity: "create_post", Window: 28_333_334},
			{UserID: user, Activity: "send_message"}, // an item that serves forever
		} {
			item, done, err := store.Update(t.Context(), ratelimit.Write{Key: k, ID: ratelimit.NewID("r"), Now: now * 1000, Expires: now})
			if err != nil || !done {
				t.Fatal(done, err)
			}
			want[k] = item
		}
		got, err := d.User(t.Context(), user)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%d characters: %v (-want +got):\n%s", length, err, diff)
		}
	}
	for _, length := range []int{1, 36, 37, 128} {
		user := strings.Repeat("u", length)
		swept, err := d.Erase(t.Context(), user, Sweep{})
		if want := (Swept{Scanned: 2, Stale: 2, Deleted: 2, Users: 1, Finished: true}); err != nil || !cmp.Equal(swept, want) {
			t.Errorf("%d characters: Erase = %+v, %v, want %+v", length, swept, err, want)
		}
		if left, err := d.User(t.Context(), user); err != nil || len(left) != 0 {
			t.Errorf("%d characters: %v, %v is left", length, left, err)
		}
	}
}

// The items of one user fill more than two pages of 1 MB.
func TestUserReadsEachPage(t *testing.T) {
	y := newYard(t)
	y.pad = large
	y.fill(t, "u", 1, 25, now)
	got, err := y.User(t.Context(), "u0")
	if requests := y.proxy.Counts()["Query"]; err != nil || len(got) != 25 || requests != 3 {
		t.Errorf("%d items, %v after %d queries, want 25 after 3", len(got), err, requests)
	}
}
