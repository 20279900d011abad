package dynamostore_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
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
				TableName: &table, Key: Key(ratelimit.Key{UserID: "u", Activity: "act"}),
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

// beside returns a policy of first and seven limits of the form text, all with
// names of 8 letters. %d in text becomes a number from 1 to 7.
func beside(first, text string) string {
	limits := []string{"namednil: " + first}
	for i := range 7 {
		form := text
		if strings.Contains(text, "%d") {
			form = fmt.Sprintf(text, i+1)
		}
		limits = append(limits, "named"+strings.Repeat(string(rune('a'+i)), 3)+": "+form)
	}
	return strings.Join(limits, ", ")
}

// largest are the largest updates by construction.
var largest = map[string]struct {
	first  string // a policy that counted before; empty: nothing is counted
	counts []int64
	wait   int64 // milliseconds after each of them
	policy string
	n      int64
}{
	"a log of 100, one by one":    {"log 100/12h", []int64{1, 1, 1}, 10, "log 100/12h", 1},
	"a log of 100, 50 at once":    {"", nil, 0, "log 100/12h", 50},
	"a log of 100, 51 at once":    {"", nil, 0, "log 100/12h", 51},
	"a log of 100, all at once":   {"", nil, 0, "log 100/12h", 100},
	"a used log, all at once":     {"log 100/1s", []int64{50, 50}, 1000, "log 100/1s", 100},
	"a used log, 50 at once":      {"log 100/1s", []int64{50, 50}, 1000, "log 100/1s", 50},
	"a log lowered to 1":          {"log 100/1s", []int64{100}, 1000, "log 1/1s", 1},
	"a log lowered to 50, 1":      {"log 100/12h", []int64{40}, 1, "log 50/12h", 1},
	"a log lowered to 50, 10":     {"log 100/12h", []int64{40}, 1, "log 50/12h", 10},
	"a log lowered to 50, 50":     {"log 100/1s", []int64{100}, 1000, "log 50/1s", 50},
	"sliding 65":                  {"", nil, 0, "sliding 65/1h", 1},
	"sliding 65, millisecond":     {"", nil, 0, "sliding 65/183ms", 1},
	"sliding 66":                  {"", nil, 0, "sliding 66/1h", 1},
	"sliding 130":                 {"sliding 130/1h", []int64{101}, 3_600_001, "sliding 130/1h", 1},
	"sliding 130, millisecond":    {"sliding 130/365ms", []int64{101}, 365, "sliding 130/365ms", 1},
	"sliding 1,000,000":           {"sliding 1000000/1h", []int64{999_000}, 3_700_000, "sliding 1000000/1h", 1},
	"sliding 1,000,000, cold":     {"", nil, 0, "sliding 1000000/2800s", 1},
	"sliding 1,000,000 days":      {"", nil, 0, "sliding 1000000/366d", 3},
	"bucket at another interval":  {"bucket 10/1m burst 15", []int64{9}, 5, "bucket 7/7h burst 13", 1},
	"reservoir, next window":      {"reservoir 2/10s ahead 15m", []int64{1, 1}, 0, "reservoir 2/10s ahead 15m", 1},
	"a log of 100 and 7 sliding":  {"", nil, 0, beside("log 100/12h", "sliding 100/28%dms"), 100},
	"99 in a log, 7 used sliding": {beside("log 100/12h", "sliding 100/%dh"), []int64{1}, 1, beside("log 100/12h", "sliding 100/%dh"), 99},
	"50 in a log and 7 sliding":   {"", nil, 0, beside("log 100/12h", "sliding 100/28%dms"), 50},
	"a used log and 7 sliding":    {beside("log 100/12h", "sliding 100/28%dms"), []int64{1, 1}, 1, beside("log 100/12h", "sliding 100/28%dms"), 50},
	"a log of 100 and 7 fixed":    {"", nil, 0, beside("log 100/12h", "100/%dh"), 100},
	"a log of 100 and 7 buckets":  {"", nil, 0, beside("log 100/12h", "bucket 100/%dm"), 100},
	"50 in a log, 7 used buckets": {beside("log 100/12h", "bucket 100/%dm"), []int64{1}, 1, beside("log 100/12h", "bucket 100/%dh burst 101"), 50},
	"99 in a log, 7 used buckets": {beside("log 100/12h", "bucket 100/%dm"), []int64{1}, 1, beside("log 100/12h", "bucket 100/%dh burst 101"), 99},
	"1 in a log, 7 used buckets":  {beside("log 100/12h", "bucket 100/%dm"), []int64{40}, 1, beside("log 41/12h", "bucket 100/%dh burst 101"), 1},
	"a log lowered to 1 beside 7": {beside("log 100/1s", "bucket 100/%ds"), []int64{100}, 10_000, beside("log 1/1s", "bucket 100/%ds"), 1},
	"a log lowered to 50 beside":  {beside("log 100/1h", "bucket 100/%ds"), []int64{45}, 1, beside("log 50/1h", "bucket 101/101m burst 100"), 1},
	"eight sliding":               {beside("sliding 100/289ms", "sliding 100/28%dms"), []int64{1, 1, 1}, 1, beside("sliding 100/289ms", "sliding 100/28%dms"), 1},
	"eight sliding after a pause": {beside("sliding 100/289ms", "sliding 100/28%dms"), []int64{1, 1, 1}, 500, beside("sliding 100/289ms", "sliding 100/28%dms"), 1},
	"eight buckets":               {beside("bucket 1/1s burst 9", "bucket 1/%ds burst 9"), []int64{3}, 1, beside("bucket 1/2s burst 9", "bucket 1/1%ds burst 9"), 1},
	"eight lockouts":              {beside("lockout 9/1h for 1h", "lockout 9/%dh for 1h"), []int64{1, 1}, 1, beside("lockout 9/1h for 1h", "lockout 9/%dh for 1h"), 1},
	"eight lockouts, behind":      {beside("lockout 9/1h for 1h", "lockout 9/%dh for 1h"), []int64{1, 1}, -10, beside("lockout 9/1h for 1h", "lockout 9/%dh for 1h"), 1},
	"eight lockouts, anew":        {beside("lockout 1/1h for 1s", "lockout 1/%dh for 1s"), []int64{1}, 1000, beside("lockout 1/1h for 1s", "lockout 1/%dh for 1s"), 1},
	"a log of 100, 7 lockouts":    {beside("log 100/12h", "lockout 100/%dh for 1h"), []int64{1}, 1, beside("log 100/12h", "lockout 100/%dh for 1h"), 99},
	"50 in a log, 7 lockouts":     {beside("log 100/12h", "lockout 100/%dh for 1h"), []int64{1}, 1, beside("log 100/12h", "lockout 100/%dh for 1h"), 50},
	"a reservoir and 7 fixed":     {beside("reservoir 1/1h ahead 3h", "9/%dh"), []int64{1}, 1, beside("reservoir 1/1h ahead 3h", "9/%dh"), 1},
}

// Each of the largest updates is sent once from what is known and once from
// nothing. The one from what is known is performed, and so is its undo.
func TestTheLargestUpdatesFitAndWorkOnDynamoDB(t *testing.T) {
	store := New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	for _, name := range slices.Sorted(maps.Keys(largest)) {
		t.Run(name, func(t *testing.T) {
			tt := largest[name]
			now, item := start.UnixMilli(), ratelimit.Item{}
			send := func(w ratelimit.Write, want bool) {
				t.Helper()
				w.Key.UserID = name
				var done bool
				var err error
				if item, done, err = store.Update(t.Context(), w); err != nil || want && !done {
					t.Fatalf("Update = %v, %v, want it performed: %+v", done, err, w)
				}
			}
			for i, n := range tt.counts {
				u, _ := policy.Must(tt.first).Take(now, n, 1, item.State)
				w := take(policy.Must(tt.first), now, u)
				w.ID = ratelimit.NewID(fmt.Sprint("before ", i))
				send(w, true)
				now += tt.wait
			}
			p := policy.Must(tt.policy)
			counted := item
			cold, _ := p.Take(now, tt.n, 2, nil)
			w := take(p, now, cold)
			if tt.first != "" { // it may or may not fit
				count := small(t, w)
				send(w, false)
				t.Logf("from nothing: %d operators", count)
				if _, done := item.Find(w); done {
					return
				}
			}
			u, ok := p.Take(now, tt.n, 2, counted.State)
			if !ok {
				t.Fatalf("%d do not fit in %v", tt.n, counted.State)
			}
			w = take(p, now, u)
			in := UpdateInput("t", w)
			t.Logf("%d operators, %d and %d bytes", small(t, w), len(*in.ConditionExpression), len(*in.UpdateExpression))
			send(w, true)
			sendUndo(t, p, now, tt.n, w, item, send)
		})
	}
}

// sendUndo gives back what w has just counted in item.
func sendUndo(t *testing.T, p policy.Policy, now, n int64, w ratelimit.Write, item ratelimit.Item, send func(ratelimit.Write, bool)) {
	t.Helper()
	u, ok := p.Undo(now, now, p.CountedAt(now, item.State), n, item.State)
	if !ok {
		return
	}
	kept, found := item.Find(w)
	if !found {
		t.Fatalf("the id of the check is not in %v", item)
	}
	back := ratelimit.Write{Key: w.Key, Update: u, ID: ratelimit.NewID("release"), Drop: kept, Now: now}
	small(t, back)
	send(back, true)
}
