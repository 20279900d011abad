package dynamoedit_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	. "github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// set makes limit the live limit of create_post.
func set(t *testing.T, s *Table, at time.Time, limit string) error {
	c := liveedit.Change{At: at, By: "op", Op: "set", Activity: "create_post", Limit: limit, Why: "a test"}
	return liveedit.Edit(t.Context(), s, cricket.All, c, func(l liveedit.Draft) (liveedit.Draft, error) {
		return l.Set("create_post", "", limit, ""), nil
	})
}

// Settings and their history change together, and changes that come at the same
// time happen one after the other. A sweep ignores them.
func TestSettingsAndTheirHistory(t *testing.T) {
	store := dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	s := New(store.Table())
	if stored, err := s.Settings(t.Context(), true); stored.Version != 0 || err != nil {
		t.Errorf("without a document: %+v, %v", stored, err)
	}
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for _, limit := range []string{"20/1m", "30/1m"} {
		testkit.OK(t, set(t, s, at, limit))
	}
	for _, consistent := range []bool{true, false} {
		stored, err := s.Settings(t.Context(), consistent)
		const want = `{"activities":{"create_post":{"limit":"30/1m",` +
			`"set":{"":{"of":"30/1m","since":"2023-11-14T22:13:20Z","by":"op","why":"a test"}}}}}`
		if string(stored.Document) != want || stored.Version != 2 || len(stored.Trials) > 0 || err != nil {
			t.Errorf("%s at version %d, with the trials %s, %v", stored.Document, stored.Version, stored.Trials, err)
		}
	}
	changes, err := s.SettingsHistory(t.Context())
	want := []liveedit.Change{
		{Version: 2, At: at, By: "op", Op: "set", Activity: "create_post", Limit: "30/1m", Why: "a test"},
		{Version: 1, At: at, By: "op", Op: "set", Activity: "create_post", Limit: "20/1m", Why: "a test"},
	}
	if diff := cmp.Diff(want, changes); diff != "" || err != nil {
		t.Errorf("history: %v (-want +got):\n%s", err, diff)
	}

	var mu sync.Mutex
	done, conflicts := 0, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := set(t, s, at, "40/1m")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done++
			case errors.Is(err, liveedit.ErrConflict):
				conflicts++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	changes, err = s.SettingsHistory(t.Context())
	if err != nil || done == 0 || len(changes) != 2+done || changes[0].Version != int64(2+done) {
		t.Errorf("%d done and %d conflicts of 8 at once, and %d changes kept: %v", done, conflicts, len(changes), err)
	}

	swept, err := table.New(store.Table()).Sweep(t.Context(), table.Sweep{Now: 1 << 40})
	if err != nil || swept.Deleted != 0 || swept.Users != 0 {
		t.Errorf("a sweep: %+v, %v", swept, err)
	}
}

// The limit before a lower one is an attribute beside the document, because older code
// refuses a document with more members. It goes when no limit before was higher.
func TestTheLimitBeforeALowerOneIsBesideTheDocument(t *testing.T) {
	s := New(dynamotest.Client(t, dynamotest.Endpoint(t)), dynamotest.Table(t))
	for _, tt := range []struct{ limit, trials string }{
		{"50/1m", ""},
		{"20/1m", `{"create_post":{"":{"of":"20/1m","before":"50/1m"}}}`},
		{"90/1m", ""},
	} {
		testkit.OK(t, set(t, s, time.UnixMilli(0), tt.limit))
		stored, err := s.Settings(t.Context(), true)
		document := `{"activities":{"create_post":{"limit":"` + tt.limit + `","set":{"":{"of":"` + tt.limit + `","since":"1970-01-01T00:00:00Z","by":"op","why":"a test"}}}}}`
		if string(stored.Document) != document || string(stored.Trials) != tt.trials || err != nil {
			t.Errorf("%s: the document is %s, and beside it %q, %v; want %s and %q", tt.limit, stored.Document, stored.Trials, err, document, tt.trials)
		}
	}
}

// An operator deletes the document by hand. Versions start again at 1, and the history keeps
// all changes.
func TestADeletedDocument(t *testing.T) {
	client, name := dynamotest.Client(t, dynamotest.Endpoint(t)), dynamotest.Table(t)
	s := New(client, name)
	at := time.UnixMilli(1_700_000_000_000)
	testkit.OK(t, errors.Join(set(t, s, at, "20/1m"), set(t, s, at, "30/1m")))
	testkit.Must(client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: map[string]types.AttributeValue{
		"userId": dynamostore.Text(" config"), "activityWindow": dynamostore.Text("limits"),
	}}))(t)
	testkit.OK(t, set(t, s, at.Add(time.Second), "40/1m"))
	changes, err := s.SettingsHistory(t.Context())
	var versions []int64
	for _, c := range changes {
		versions = append(versions, c.Version)
	}
	if diff := cmp.Diff([]int64{1, 2, 1}, versions); diff != "" || err != nil {
		t.Errorf("versions in the history: %v (-want +got):\n%s", err, diff)
	}
}

// Older code wrote a sentence instead of the fields.
func TestAChangeOfOlderCodeIsRead(t *testing.T) {
	client, name := dynamotest.Client(t, dynamotest.Endpoint(t)), dynamotest.Table(t)
	text, number := dynamostore.Text, dynamostore.Number
	testkit.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]types.AttributeValue{
		"userId": text(" config"), "activityWindow": text("history#001700000000000#000000000007"), "version": number(7),
		"createdAt": number(1700000000000), "changedBy": text("op"), "what": text("set create_post 20/1m"), "why": text("a launch"),
	}}))(t)
	changes, err := New(client, name).SettingsHistory(t.Context())
	want := []liveedit.Change{{Version: 7, At: time.UnixMilli(1_700_000_000_000).UTC(), By: "op", What: "set create_post 20/1m", Why: "a launch"}}
	if diff := cmp.Diff(want, changes); diff != "" || err != nil {
		t.Errorf("history: %v (-want +got):\n%s", err, diff)
	}
}

// An edit of a document that can't be read changes nothing.
func TestAnUnreadableDocumentIsNotEdited(t *testing.T) {
	client, name := dynamotest.Client(t, dynamotest.Endpoint(t)), dynamotest.Table(t)
	s := New(client, name)
	testkit.OK(t, set(t, s, time.UnixMilli(0), "20/1m"))
	text := dynamostore.Text
	testkit.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]types.AttributeValue{
		"userId": text(" config"), "activityWindow": text("limits"), "version": text("2"), "document": text("{}"),
	}}))(t)
	if e, ok := errors.AsType[*live.DocumentError](set(t, s, time.UnixMilli(0), "30/1m")); !ok {
		t.Errorf("an edit: %v, want a DocumentError", e)
	}
	if c, err := s.SettingsHistory(t.Context()); len(c) != 1 || err != nil {
		t.Errorf("%v, %v, want one change in the history", c, err)
	}
}
