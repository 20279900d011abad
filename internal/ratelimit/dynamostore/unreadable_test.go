package dynamostore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// A foreign attribute is one that somebody else has written.
type foreign struct {
	policy string
	attr   string
	value  types.AttributeValue
}

var unread = []foreign{
	{"10/1m", "note", text("VIP")},
	{"bucket 1/5s", "tat", number("9.5")},
	{"log 1/1h", "a0", number("9.5")},
}

var unreadable = []foreign{
	{"10/1m", "activityCount", text("3")},
	{"10/1m", "activityCount", &types.AttributeValueMemberNULL{Value: true}},
	{"10/1m", "activityCount", number("9.5")},
	{"10/1m", "activityCount", number("1e30")},
	{"10/1m", "activityCount", number("-1e30")},
	{"10/1m", "ids", text("r1")},
	{"10/1m", "ids", number("3")},
	{"10/1m", "ids", &types.AttributeValueMemberL{Value: []types.AttributeValue{text("r1")}}},
	{"10/1m", "ids", &types.AttributeValueMemberBS{Value: [][]byte{{1, 2, 3}}}},
	{"10/1m", "i27", number("7")}, // the next set
	{"1000/1m", "i26", number("7")},
	{"bucket 1/5s", "tat", text("soon")},
	{"10/1m", "activityCount", &types.AttributeValueMemberBS{Value: [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}}}},
	{"bucket 1/5s", "i26", text("x")},
	{"log 100/12h", "a5", text("x")},
	{"log 100/12h", "top", text("x")},
	{"sliding 50/1h", "c472222", text("x")},
	{"reservoir 10/10s ahead 15m", "t", text("x")},
	{"minute: 10/1m, day: 200/1d", "day_s", text("x")},
	{"minute: 10/1m, day: 200/1d", "minute_s", number("1700000040000000001.5")},
}

func TestAnUnreadableAttributeIsNamedAfterAtMostTwoRequests(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	client, table := dynamotest.Client(t, endpoint), dynamotest.Table(t)
	for i, tt := range unreadable {
		t.Run(fmt.Sprintf("%s with %s as %T %d", tt.policy, tt.attr, tt.value, i), func(t *testing.T) {
			l := &ratelimit.Limiter{
				Store: New(dynamotest.Config(endpoint), table), Memory: ratelimit.NewMemory(1 << 20),
				Timeout: 5 * time.Second, Now: func() time.Time { return start },
			}
			r := request("r1")
			r.UserID, r.Policy = fmt.Sprint("u", i), policy.Must(tt.policy)
			if tt.attr == "a5" || tt.attr == "top" {
				r.Count = 100 // every slot matters
			}
			window, _ := r.Policy.Item(start.UnixMilli())
			write := func(attr string, value types.AttributeValue) {
				t.Helper()
				_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: &table, Key: itemKey(ratelimit.Key{UserID: r.UserID, Activity: r.Activity, Window: window}),
					UpdateExpression: aws.String("SET #a = :v"), ExpressionAttributeNames: map[string]string{"#a": attr},
					ExpressionAttributeValues: map[string]types.AttributeValue{":v": value},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			write(tt.attr, tt.value)
			for range 2 { // the second time with what was learned
				checkUnreadable(t, l, ratelimit.Check, r, tt.attr)
				checkUnreadable(t, l, ratelimit.Status, r, tt.attr)
			}
			if other := r; true {
				other.UserID += " other"
				if d, err := l.Check(t.Context(), other); err != nil || !d.Allowed || l.CircuitOpen() {
					t.Errorf("another user's Check = %+v, %v, circuit open: %v", d, err, l.CircuitOpen())
				}
			}
			if d, err := l.Decide(t.Context(), ratelimit.Reset, r); err != nil || d.Used != 0 {
				t.Errorf("Reset = %+v, %v, want nothing used", d, err)
			}
			d, err := l.Check(t.Context(), r)
			if err != nil || !d.Allowed || d.Used != r.Count {
				t.Errorf("Check after Reset = %+v, %v, want %d used", d, err, r.Count)
			}
			if r.Policy.Queues() {
				return
			}
			write(tt.attr, tt.value)
			r.At = d.At
			checkUnreadable(t, l, ratelimit.Release, r, tt.attr)
		})
	}
}

func checkUnreadable(t *testing.T, l *ratelimit.Limiter, op ratelimit.Op, r ratelimit.Request, attr string) {
	t.Helper()
	d, err := l.Decide(t.Context(), op, r)
	e, ok := errors.AsType[*ratelimit.StoreError](err)
	if !ok || e.Failure != ratelimit.Unreadable || e.Attr != attr || d.Requests > 2 {
		t.Errorf("it answers %+v, %v, want %s to be unreadable after at most two requests", d, err, attr)
	}
}

// An attribute that no policy knows changes nothing. One that the first update replaces is
// repaired, and nobody has to know.
func TestAForeignAttributeThatIsNotRead(t *testing.T) {
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	l := &ratelimit.Limiter{Store: New(dynamotest.Config(endpoint), table), Now: func() time.Time { return start }}
	for _, tt := range unread {
		r := request("r1")
		r.UserID, r.Policy = tt.attr, policy.Must(tt.policy)
		window, _ := r.Policy.Item(start.UnixMilli())
		item := itemKey(ratelimit.Key{UserID: r.UserID, Activity: r.Activity, Window: window})
		item[tt.attr] = tt.value
		if _, err := dynamotest.Client(t, endpoint).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
		for _, op := range []ratelimit.Op{ratelimit.Check, ratelimit.Status} {
			if d, err := l.Decide(t.Context(), op, r); err != nil || d.Used != 1 || d.Requests != 1 {
				t.Errorf("%s: %s = %+v, %v, want 1 used after one request", tt.attr, op, d, err)
			}
		}
	}
}
