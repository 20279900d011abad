package table_test

import (
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Create creates the table or finds it, turns TTL on, and leaves the items as they are. A
// table without TTL is one of an earlier run that stopped.
func TestCreate(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	client := dynamotest.Client(t, endpoint)
	for _, table := range []string{"guards-test-" + rand.Text(), dynamotest.Table(t)} {
		store := dynamostore.New(dynamotest.Config(endpoint), table)
		for range 2 {
			testkit.OK(t, New(store.Table()).Create(t.Context()))
			ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
			if err != nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled || *ttl.TimeToLiveDescription.AttributeName != "expiresAt" {
				t.Errorf("TTL: %+v, %v, want it on expiresAt", ttl, err)
			}
			w := ratelimit.Write{Key: ratelimit.Key{UserID: "u1", Activity: "act", Window: 1}, ID: ratelimit.NewID(rand.Text()), Expires: 1 << 40}
			if _, done, err := store.Update(t.Context(), w); err != nil || !done {
				t.Fatal(done, err)
			}
		}
		if item, err := store.Read(t.Context(), ratelimit.Key{UserID: "u1", Activity: "act", Window: 1}); err != nil || len(item.IDs) == 0 {
			t.Errorf("the item is %+v, %v, want it unchanged by the second call", item, err)
		}
	}
}

// DynamoDB creates a table within seconds, and refuses requests until then.
// DynamoDB Local creates it at once.
func TestCreateWaitsForTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var early []string // requests to a table that is not ready
		on := false
		ready := time.Now().Add(10 * time.Second)
		table := over(func(op string, _ map[string]any) string {
			waiting := time.Now().Before(ready)
			switch {
			case op == "DescribeTable" && waiting:
				return `{"Table": {"TableStatus": "CREATING"}}`
			case op == "DescribeTable":
				return `{"Table": {"TableStatus": "ACTIVE"}}`
			case op != "CreateTable" && waiting:
				early = append(early, op)
			}
			on = on || op == "UpdateTimeToLive"
			return `{}`
		})
		if err := table.Create(t.Context()); err != nil || !on || len(early) > 0 || time.Now().Before(ready) {
			t.Errorf("error %v, TTL turned on: %v, sent too early: %v", err, on, early)
		}
	})
}

func TestMemory(t *testing.T) {
	store := new(memstore.Store)
	put := func(user string, window, expires int64) {
		t.Helper()
		w := ratelimit.Write{Key: ratelimit.Key{UserID: user, Activity: "act", Window: window}, ID: ratelimit.NewID("r"), Expires: expires}
		if _, done, err := store.Update(t.Context(), w); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	put("gone", 1, now-1)
	put("gone", 2, now)
	put("here", 1, now)
	put(" room here", 1, now-1)
	put(" room here", 2, now)
	put(" room other", 1, now)
	put(" tenant here", 1, now)
	m := Memory{Store: store}
	for _, step := range []struct {
		erase string // the user; empty: a sweep
		o     Sweep
		want  Swept
	}{
		{"", Sweep{Now: now, DryRun: true}, Swept{Scanned: 7, Stale: 2, Users: 2, Subjects: Subjects{"room": 2, "tenant": 1}, Finished: true}},
		{"", Sweep{Now: now}, Swept{Scanned: 7, Stale: 2, Deleted: 2, Users: 2, Subjects: Subjects{"room": 2, "tenant": 1}, Finished: true}},
		{" room here", Sweep{}, Swept{Scanned: 1, Stale: 1, Deleted: 1, Subjects: Subjects{"room": 1}, Finished: true}},
		{" room here", Sweep{}, Swept{Finished: true}},
		{"here", Sweep{DryRun: true}, Swept{Scanned: 1, Stale: 1, Users: 1, Finished: true}},
		{"here", Sweep{}, Swept{Scanned: 1, Stale: 1, Deleted: 1, Users: 1, Finished: true}},
		{"", Sweep{Now: now}, Swept{Scanned: 3, Users: 1, Subjects: Subjects{"room": 1, "tenant": 1}, Finished: true}},
	} {
		run := func() (Swept, error) { return m.Sweep(t.Context(), step.o) }
		if step.erase != "" {
			run = func() (Swept, error) { return m.Erase(t.Context(), step.erase, step.o) }
		}
		got, err := run()
		if err != nil || !cmp.Equal(got, step.want) {
			t.Errorf("%+v: %+v, %v, want %+v", step, got, err, step.want)
		}
	}
}
