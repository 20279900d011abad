package table_test

import (
	"context"
	"errors"
	"testing"

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
