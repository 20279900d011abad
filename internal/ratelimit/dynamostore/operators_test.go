package dynamostore_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// DynamoDB accepts at most so much in one expression.
const (
	maxOperators = 300
	maxBytes     = 4096
)

// Comparisons, connectives and functions are operators. The AND of a BETWEEN
// belongs to the BETWEEN.
var (
	operator = regexp.MustCompile(`<=|>=|=|\b(BETWEEN|AND|OR|NOT|attribute_not_exists|contains)\b`)
	between  = regexp.MustCompile(`BETWEEN (\S+) AND`)
)

func operators(condition string) int {
	return len(operator.FindAllString(between.ReplaceAllString(condition, "BETWEEN $1"), -1))
}

func TestDynamoDBCountsOperatorsAsThisTestDoes(t *testing.T) {
	table := dynamotest.Table(t)
	client := dynamotest.Client(t, dynamotest.Endpoint(t))
	// Each part is as many operators as it has ANDs, so 150 parts less one AND,
	// and one more operator, are the most.
	for _, part := range []string{"a = :v", "a <= :v", "(a >= :v)", "a BETWEEN :v AND :v"} {
		for most, extra := range map[bool]string{true: " OR b = :v", false: " OR NOT b = :v OR b = :v"} {
			condition := strings.Repeat(part+" AND ", 148) + part + extra
			if got := operators(condition) <= maxOperators; got != most {
				t.Fatalf("%s: %d operators", part, operators(condition))
			}
			_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: &table, Key: itemKey(ratelimit.Key{UserID: "u", Activity: "act"}),
				ConditionExpression: &condition, UpdateExpression: aws.String("SET b = :v"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: "1"}},
			})
			tooMany := err != nil && strings.Contains(err.Error(), "too many operators")
			if tooMany == most {
				t.Errorf("%s: %d operators, and DynamoDB answers %v", part, operators(condition), err)
			}
		}
	}
}

// Law 6, for every state that a shared item can reach: an update has at most
// 300 operators, and each of its expressions has at most 4,096 bytes.
func TestLawSmall(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		n := policytest.Count(t, p)
		s := w.State(p)
		for _, known := range []policy.State{nil, s} {
			if u, ok := p.Take(w.Now, n, uint64(n), known); ok {
				small(t, take(p, w.Now, u))
				for _, late := range moves(p, w.Now, u) {
					small(t, late)
				}
			}
		}
		at := rapid.SampledFrom([]int64{w.Now, p.CountedAt(w.Now, s), w.Latest}).Draw(t, "at")
		if u, ok := p.Renew(w.Now, at, n, s); ok {
			for _, write := range undos(p, w.Now, u) {
				write.Renewed = true
				small(t, write)
			}
		}
		if u, ok := p.Undo(w.Now, at, at, n, s); ok {
			for _, write := range append(undos(p, w.Now, u), undos(p, w.Now, p.Clear(u))...) {
				small(t, write)
			}
		}
	})
}

// take returns the write of a check that plans u.
func take(p policy.Policy, now int64, u policy.Update) ratelimit.Write {
	window, expires := p.Item(now)
	return ratelimit.Write{
		Key: ratelimit.Key{UserID: "u1", Activity: "act", Window: window}, ID: ratelimit.NewID("r1"),
		Note: u.ReadyAt, KeepAll: window != 0 && p.Max() <= 100, Renewed: p.HasLog() || p.Queues(), Update: u, Now: now, Expires: expires,
	}
}

// undos returns the writes that a release can send: it drops the check's id, if
// the item still has that, and may keep an id of its own.
func undos(p policy.Policy, now int64, u policy.Update) (writes []ratelimit.Write) {
	w := take(p, now, u)
	w.Expires, w.Note = 0, 0
	for kept := range w.LookIn {
		drop, both := w, w
		drop.ID, drop.Drop = ratelimit.ID{}, kept
		both.Drop = kept
		writes = append(writes, drop, both)
	}
	return append(writes, w)
}

// moves returns the writes that a late job of a reservoir can send: it drops the check's
// id with the old place and keeps it with the new one.
func moves(p policy.Policy, now int64, u policy.Update) (writes []ratelimit.Write) {
	if !p.Queues() {
		return nil
	}
	w := take(p, now, u)
	for kept := range w.LookIn {
		w.Drop = kept
		w.Drop.Note = now
		writes = append(writes, w)
	}
	return writes
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// small fails t if w is too large for DynamoDB. It returns the number of
// operators.
func small(t fataler, w ratelimit.Write) int {
	t.Helper()
	in := UpdateInput("rateLimit", w)
	condition := aws.ToString(in.ConditionExpression)
	count := operators(condition)
	if count > maxOperators || len(condition) > maxBytes || len(*in.UpdateExpression) > maxBytes {
		t.Fatalf("the condition has %d operators and %d bytes, the update %d bytes: %+v",
			count, len(condition), len(*in.UpdateExpression), w)
	}
	return count
}
