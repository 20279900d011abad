//go:build unix

package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limiter"
	page "github.com/cric-talk/guards/limits"
)

// newGuard returns posts-guard's handler as it is deployed: with its log, its
// metrics and live limits.
func newGuard(t testing.TB, endpoint, table string) *guard.Handler {
	t.Helper()
	return newGuardOf(t, endpoint, table, page.All)
}

// newGuardOf returns the handler of all's posts-guard.
func newGuardOf(t testing.TB, endpoint, table string, all []guards.Guard) *guard.Handler {
	t.Helper()
	t.Setenv("TABLE_NAME", table)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	h, err := lambdafn.NewGuard(dynamotest.Config(endpoint), all, "posts-guard", slog.New(slog.NewJSONHandler(null, nil)))
	if err != nil {
		t.Fatal(err)
	}
	h.Metrics.Writer.W = null
	return h
}

// asksLocally returns a func that asks about a new user by the Go client with a limiter in this
// process.
func asksLocally(t testing.TB, endpoint, table string) func() {
	t.Helper()
	cfg := dynamotest.Config(endpoint)
	l, err := limiter.New(t.Context(), page.All, limiter.Options{Table: table, Config: &cfg, Log: slog.New(slog.DiscardHandler), Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	g, err := client.New(t.Context(), client.Options{Local: l})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	return func() {
		n++
		d, err := g.Check(t.Context(), "create_post", client.Request{UserID: fmt.Sprintf("0b5d8e5e-7b5b-4ac9-9f02-%012d", n)})
		if err != nil || d.Reason != guards.OK {
			t.Fatalf("%+v, %v", d, err)
		}
	}
}

// taking returns the guards of the app, whose posts have this limit.
func taking(limit guards.Limit) []guards.Guard {
	return posting(func(a *guards.Activity) { a.Limit, a.Tiers = limit, nil })
}

// inRooms returns the guards of the app, whose posts count for a room with this limit, too.
func inRooms(limit guards.Limit) []guards.Guard {
	return posting(func(a *guards.Activity) { a.Subjects = []guards.Subject{{Name: "room", Limit: limit}} })
}

// posting returns posts-guard of the app with a change of its first activity.
func posting(change func(*guards.Activity)) []guards.Guard {
	posts := page.Posts
	posts.Activities = slices.Clone(posts.Activities)
	change(&posts.Activities[0])
	return []guards.Guard{posts}
}

// inNewRooms returns the events of next, each in a room of its own.
func inNewRooms(next func() []byte) func() []byte {
	n := 0
	return func() []byte {
		n++
		return fmt.Appendf(bytes.TrimSuffix(next(), []byte("}")), `,"subjects":{"room":"0b5d8e5e-7b5b-4ac9-9f01-%012d"}}`, n)
	}
}

// users returns events of a new user each time, with ids of 36 characters.
func users() func() []byte { return usersWith("") }

// usersWith returns the events of users with more fields.
func usersWith(fields string) func() []byte {
	n, format := 0, `{"userId":"0b5d8e5e-7b5b-4ac9-9f01-%012d","activity":"create_post"`+fields+`}`
	return func() []byte {
		n++
		return fmt.Appendf(nil, format, n)
	}
}

// asking returns a func that asks h, with a deadline as Lambda's, and reports
// whether the answer has a reason. It fails t if the guard decided alone.
func asking(t testing.TB, h *guard.Handler) func(event []byte, reason string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	reasons := map[string][]byte{"ok": []byte(`"reason":"ok"`), "limited": []byte(`"reason":"limited"`)}
	return func(event []byte, reason string) bool {
		answer, err := h.Invoke(ctx, event)
		if err != nil || bytes.Contains(answer, []byte(`"unavailable"`)) {
			t.Fatalf("%s: %s, %v", event, answer, err)
		}
		return bytes.Contains(answer, reasons[reason])
	}
}

// bare returns a call of the SDK's client that only adds 1 to a number.
func bare(t testing.TB, cfg aws.Config, table string) func() {
	t.Helper()
	client, n := dynamodb.NewFromConfig(cfg), 0
	return func() {
		n++
		_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &table,
			Key: map[string]types.AttributeValue{
				"userId":         &types.AttributeValueMemberS{Value: fmt.Sprintf("0b5d8e5e-7b5b-4ac9-9f01-%012d", n)},
				"activityWindow": &types.AttributeValueMemberS{Value: "bare#28333333"},
			},
			UpdateExpression:          aws.String("ADD activityCount :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "1"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The allocations of a decision, and of a refusal that asks nobody, stay below their goals.
// A room costs about as many as the user, and a few more hold the parts together. Unlike
// time, they are the same in each run.
func TestAllocations(t *testing.T) {
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	ask, next := asking(t, newGuard(t, endpoint, table)), users()
	both, inRoom := asking(t, newGuardOf(t, endpoint, table, inRooms("10/1m"))), inNewRooms(next)
	decision := testing.AllocsPerRun(50, func() { ask(next(), "ok") })
	two := testing.AllocsPerRun(50, func() { both(inRoom(), "ok") })
	again := next()
	for !ask(again, "limited") {
		continue
	}
	refusal := testing.AllocsPerRun(50, func() { ask(again, "limited") })
	t.Logf("a decision makes %.0f allocations, with a room %.0f, a refusal from memory %.0f", decision, two, refusal)
	if decision > 200 || two > 2*decision+10 || refusal > 33 {
		t.Errorf("a decision makes %.0f allocations, with a room %.0f, a refusal from memory %.0f, want at most 200, twice as many and 10, and 33", decision, two, refusal)
	}
}
