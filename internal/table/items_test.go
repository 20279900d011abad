package table_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestItems(t *testing.T) {
	y := newYard(t)
	const users = 30
	y.fill(t, "u", users, 1, now)
	y.fill(t, " config", 1, 1, 0)
	estimate, err := y.Estimate(t.Context())
	if err != nil || estimate.Items != users+1 || estimate.Units < 0.5 {
		t.Errorf("the estimate is %+v, %v", estimate, err)
	}
	found := map[string]bool{}
	cost, err := y.Items(t.Context(), func(k ratelimit.Key, _ ratelimit.Item) { found[k.UserID] = true })
	if err != nil || len(found) != users || !found["u29"] || cost.Items != users+1 || cost.Units < 0.5 {
		t.Errorf("found %v, read %+v, %v", found, cost, err)
	}
}

// For every request to a table, a failure is an error that tells what is wrong, and so
// is a caller who leaves.
func TestFailuresAreReported(t *testing.T) {
	cfg := dynamotest.Config(dynamotest.Endpoint(t))
	missing := New(dynamostore.New(cfg, "no-such-table").Table())
	denied := newYard(t)
	denied.fill(t, "u", 1, 1, now-1)
	denied.proxy.Fail(1, dynamotest.AccessDenied, "BatchExecuteStatement")
	left, leave := context.WithCancel(t.Context())
	leave()
	asks := map[string]func(context.Context, *DynamoDB) error{
		"Sweep": func(ctx context.Context, d *DynamoDB) error { _, err := d.Sweep(ctx, Sweep{Now: now}); return err },
		"Erase": func(ctx context.Context, d *DynamoDB) error { _, err := d.Erase(ctx, "u0", Sweep{}); return err },
		"User":  func(ctx context.Context, d *DynamoDB) error { _, err := d.User(ctx, "u0"); return err },
		"Stats": func(ctx context.Context, d *DynamoDB) error {
			_, err := d.Stats(ctx, now, nil, func(Stats, int) {})
			return err
		},
		"Items":    func(ctx context.Context, d *DynamoDB) error { _, err := d.Items(ctx, nil); return err },
		"Estimate": func(ctx context.Context, d *DynamoDB) error { _, err := d.Estimate(ctx); return err },
	}
	for name, ask := range asks {
		if err := ask(t.Context(), missing); whatOf(err) != "the table does not exist" {
			t.Errorf("%s of a missing table: %v", name, err)
		}
		if err := ask(left, missing); !errors.Is(err, context.Canceled) {
			t.Errorf("%s for a caller who left: %v", name, err)
		}
	}
	if err := asks["Sweep"](t.Context(), denied.DynamoDB); whatOf(err) != "access to the table is denied" {
		t.Errorf("Sweep without the right to delete: %v", err)
	}
}

// whatOf returns what a StoreError says; empty: it is none.
func whatOf(err error) string {
	if e, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return e.What
	}
	return ""
}

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
