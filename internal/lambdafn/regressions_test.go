package lambdafn_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/limits"
)

// edit changes the live limits of the rig's table.
func (r rig) edit(t testing.TB, change func(liveedit.Draft) (liveedit.Draft, error)) {
	t.Helper()
	table := dynamoedit.New(dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), r.table).Table())
	if err := liveedit.Edit(t.Context(), table, limits.All, liveedit.Change{At: time.Now(), By: "test"}, change); err != nil {
		t.Fatal(err)
	}
}

// following starts an instance and waits until it has looked at the live
// limits.
func (r rig) following(t testing.TB, function, activity string, limit int64) func(payload string) answer {
	t.Helper()
	i := r.start(t, function)
	untilLimit(t, i, activity, limit)
	return func(payload string) answer {
		a, _ := ask(t, i, payload)
		return a
	}
}

// untilLimit asks for the status of another user until the activity has this
// limit, at most for 500 times 20 ms.
func untilLimit(t testing.TB, i *lambdatest.Instance, activity string, limit int64) {
	t.Helper()
	status := fmt.Sprintf(`{"userId": "other", "activity": %q, "op": "status"}`, activity)
	for range 500 {
		if a, _ := ask(t, i, status); a.Limit == limit {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// 60 pins are counted under 100/12h, and the limit is lowered to 50. No further
// pin is allowed.
func TestALoweredLogAdmitsNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.start(t, "pins-guard")
	if a, _ := ask(t, first, fmt.Sprintf(`{"userId": %q, "activity": "pin", "count": 60}`, canary)); a.ActivityCount != 60 {
		t.Fatalf("%+v", a)
	}
	r.edit(t, func(s liveedit.Draft) (liveedit.Draft, error) { return s.Set("pin", "", "log 50/12h", ""), nil })
	for range 2 {
		lowered := r.following(t, "pins-guard", "pin", 50)
		for range 5 {
			time.Sleep(1100 * time.Millisecond) // after a second, the table is asked again
			if a := lowered(event("pin")); a.Allowed || a.ActivityCount != 60 || a.Limit != 50 {
				t.Fatalf("after 60 pins with a limit of 50: %+v, want it refused", a)
			}
		}
	}
}

// An attribute of the item has the wrong type. The guard decides from memory
// after at most two requests, and the log names the attribute.
func TestAnUnreadableItemEndsAfterTwoRequests(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]types.AttributeValue{
		"a string": &types.AttributeValueMemberS{Value: "3"},
		"NULL":     &types.AttributeValueMemberNULL{Value: true},
		"9.5":      &types.AttributeValueMemberN{Value: "9.5"},
		"1e30":     &types.AttributeValueMemberN{Value: "1e30"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			i := r.start(t, "posts-guard")
			ask(t, i, event("update_post")) // looks at the live limits
			inOneMinute(t, 20*time.Second)
			window := time.Now().Unix() / 60
			_, err := dynamotest.Client(t, dynamotest.Endpoint(t)).PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: &r.table,
				Item: map[string]types.AttributeValue{
					"userId":         &types.AttributeValueMemberS{Value: canary},
					"activityWindow": &types.AttributeValueMemberS{Value: fmt.Sprintf("create_post#%d", window)},
					"activityCount":  value,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			before := r.requests()
			if a, _ := ask(t, i, event("create_post")); a.Reason != "unavailable" || !a.Allowed {
				t.Errorf("%+v, want a decision from memory", a)
			}
			if sent := r.requests() - before; sent > 2 {
				t.Errorf("%d requests were sent, want at most 2", sent)
			}
			i.Ready(t)
			log := i.Logs()
			if !strings.Contains(log, `"attribute":"activityCount"`) || !strings.Contains(log, `"level":"ERROR"`) {
				t.Errorf("the log names no attribute: %s", log)
			}
			if a, _ := ask(t, i, event("update_post")); a.Reason != "ok" {
				t.Errorf("another item: %+v, want it decided by the table", a)
			}
			reset := fmt.Sprintf(`{"userId": %q, "activity": "create_post", "op": "reset"}`, canary)
			if a, _ := ask(t, i, reset); a.Reason != "ok" {
				t.Errorf("a reset: %+v, want it allowed", a)
			}
			if a, _ := ask(t, i, event("create_post")); a.Reason != "ok" || a.ActivityCount != 1 {
				t.Errorf("after a reset: %+v, want it repaired", a)
			}
		})
	}
}

// requests returns how many requests the proxy has seen.
func (r rig) requests() (all int) {
	for _, n := range r.proxy.Counts() {
		all += n
	}
	return all
}

// A release with a huge count is refused, and the user is not locked out.
func TestAHugeReleaseIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "chat-guard")
	a, _ := ask(t, i, event("send_message"))
	for _, count := range []string{"2766994107651000", "9223372036854775807", "1000001"} {
		back := fmt.Sprintf(`{"userId": %q, "activity": "send_message", "op": "release", "count": %s, "at": %d, "requestId": %q}`, canary, count, a.At, a.RequestID)
		if _, errorType := ask(t, i, back); errorType != "ValidationError" {
			t.Errorf("a release of %s: error %q, want a ValidationError", count, errorType)
		}
	}
	million := fmt.Sprintf(`{"userId": %q, "activity": "send_message", "op": "release", "count": 1000000, "at": %d, "requestId": %q}`, canary, a.At, a.RequestID)
	ask(t, i, million)
	if again, _ := ask(t, i, event("send_message")); again.WaitTime < 0 || again.WaitTime > 5000 {
		t.Errorf("after it: %+v, want a wait of 0 to 5 s", again)
	}
}

// A message is sent while the live limit is one in 12 hours. After the live
// limit is unset, the user waits at most the 5 s of the code's limit.
func TestAnUndoneLiveLimitReleasesTheUser(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.edit(t, func(s liveedit.Draft) (liveedit.Draft, error) {
		return s.Set("send_message", "", "bucket 1/12h", ""), nil
	})
	i := r.start(t, "chat-guard")
	sent := time.Now()
	for range 100 { // until the instance has followed
		a, _ := ask(t, i, event("send_message"))
		if !a.Allowed && a.WaitTime > 6000 {
			break
		}
		sent = time.Now()
		time.Sleep(100 * time.Millisecond)
	}
	r.edit(t, func(s liveedit.Draft) (liveedit.Draft, error) { return s.Unset("send_message", "") })
	other := r.start(t, "chat-guard")
	a, _ := ask(t, other, event("send_message"))
	if a.WaitTime > 5000 {
		t.Fatalf("after unset: %+v, want a wait of at most 5 s", a)
	}
	if a.Allowed { // the instance took 5 s to start
		return
	}
	time.Sleep(time.Until(sent.Add(5100 * time.Millisecond)))
	if a, _ := ask(t, other, event("send_message")); !a.Allowed {
		t.Errorf("5 s after the message: %+v, want it allowed", a)
	}
}

// A repeat whose first attempt was lost has no receipt, because the request may
// have been counted earlier, at another time.
func TestARepeatAfterALostAnswerHasNoWrongReceipt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "pins-guard")
	pin := fmt.Sprintf(`{"userId": %q, "activity": "pin", "requestId": "r1"}`, canary)
	first, _ := ask(t, i, pin)
	time.Sleep(20 * time.Millisecond)
	r.proxy.Fail(1, dynamotest.LoseResponse, "UpdateItem")
	again, _ := ask(t, i, pin)
	if first.At == 0 || again.ActivityCount != 1 || again.At != 0 && again.At != first.At {
		t.Errorf("first %+v, again %+v, want no other receipt", first, again)
	}
}

// A released id is new again, in a log too.
func TestAReleasedPinIsNewAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "pins-guard")
	pin := fmt.Sprintf(`{"userId": %q, "activity": "pin", "requestId": "r1"}`, canary)
	for n := range 3 {
		a, _ := ask(t, i, pin)
		if a.Reason != "ok" || a.ActivityCount != 1 || a.At == 0 {
			t.Fatalf("check %d: %+v, want it counted", n, a)
		}
		back := fmt.Sprintf(`{"userId": %q, "activity": "pin", "op": "release", "at": %d, "requestId": "r1"}`, canary, a.At)
		for range 2 {
			if a, _ := ask(t, i, back); a.Reason != "ok" || a.ActivityCount != 0 {
				t.Fatalf("release %d: %+v, want nothing left", n, a)
			}
		}
		time.Sleep(2 * time.Millisecond) // another millisecond
	}
}

// A reset whose answer is lost is not sent again.
func TestALostResetIsNotSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "posts-guard")
	ask(t, i, event("create_post"))
	r.proxy.Fail(1, dynamotest.LoseResponse, "DeleteItem")
	reset := fmt.Sprintf(`{"userId": %q, "activity": "create_post", "op": "reset"}`, canary)
	if _, errorType := ask(t, i, reset); errorType != "Unavailable" {
		t.Errorf("error %q, want Unavailable", errorType)
	}
	if n := r.proxy.Counts()["DeleteItem"]; n != 1 {
		t.Errorf("%d deletes were sent, want 1", n)
	}
}
