package dynamostore_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// Whatever an item holds, each decision ends after at most two requests, and a
// release after three: a read, an update, and a read that names the attribute at
// fault. The figures that callers see stay in their ranges.
func FuzzStoredItem(f *testing.F) {
	for _, seed := range []string{
		"", "\x00\x00\x01\x00\x01", "\x01\x00\x03\x07\x02\x09\x01\x04", "\x05\x00\x0a\x01\x00\x02\x01\x03\x02\x04\x03\x05\x04\x06\x05\x07\x06",
		"\x02\x02\x08\x10\x00\x08\x10\x00\x11\x09\x12\x0a", "\x07\x01\x02\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x80\x00\x00\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	wire := new(oneItem)
	store := over(wire.answer)
	policies := examples()
	f.Fuzz(func(t *testing.T, spec []byte) {
		d := draw{spec}
		p := policies[d.below(len(policies))]
		r := ratelimit.Request{
			UserID: "u1", Activity: "act", Policy: p, ID: "r1", Fallback: true,
			Count: 1 + int64(d.below(int(min(p.Max(), 4)))),
			At:    itemTime - int64(d.below(3)),
		}
		op := d.below(4)
		wire.begin(d.below(4) == 0, d.item(p))
		l := &ratelimit.Limiter{
			Store: store, Memory: ratelimit.NewMemory(1 << 20),
			Now:       func() time.Time { return time.UnixMilli(itemTime) },
			NewBudget: func() ratelimit.Budget { return new(tenAttempts) },
		}
		verb := []struct {
			op   ratelimit.Op
			most int // requests
		}{{ratelimit.Check, 2}, {ratelimit.Status, 2}, {ratelimit.Release, 3}, {ratelimit.Reset, 1}}[op]
		got, err := l.Decide(t.Context(), verb.op, r)
		if wire.requests > verb.most {
			t.Fatalf("%s of %v sends %d requests, want at most %d, for the item %s", verb.op, p, wire.requests, verb.most, wire.item)
		}
		if _, ok := errors.AsType[*ratelimit.StoreError](err); err != nil && !ok {
			t.Fatalf("%s of %v: %v, want a StoreError, for the item %s", verb.op, p, err, wire.item)
		}
		if got.Remaining < 0 || got.Remaining > got.Limit || got.Wait < 0 || got.Used < 0 || got.Granted < 0 || got.Granted > r.Count {
			t.Fatalf("%s of %v answers %+v for the item %s", verb.op, p, got, wire.item)
		}
	})
}

// itemTime is when each request comes.
const itemTime = 1_700_000_040_000

// examples returns two policies of each kind, and kinds together.
func examples() (list []policy.Policy) {
	for _, k := range policy.Kinds() {
		list = append(list, policy.Must(k.Examples[0]), policy.Must(k.Examples[len(k.Examples)-1]))
	}
	for _, text := range policytest.Together(func(k policy.Kind) string { return k.Examples[0] }) {
		list = append(list, policy.Must(text))
	}
	return append(list, policy.Must("minute: 10/1m, day: 200/1d"))
}

// oneItem is a table with one item. It refuses each update, because the guard
// does not hold or because an attribute has the wrong type. It stands for what
// the guard's item really holds, whatever the limiter makes of it.
type oneItem struct {
	item      []byte
	wrongType bool
	requests  int
}

func (w *oneItem) begin(wrongType bool, item map[string]any) {
	w.item, _ = json.Marshal(item)
	w.wrongType, w.requests = wrongType, 0
}

// answer implements [dynamotest.Wire].
func (w *oneItem) answer(op string, _ map[string]any) string {
	w.requests++
	switch {
	case op == "GetItem":
		return `{"Item":` + string(w.item) + `}`
	case op == "UpdateItem" && w.wrongType:
		return `{"__type":"com.amazon.coral.validate#ValidationException","message":"An operand in the update expression has an incorrect data type"}`
	case op == "UpdateItem":
		return `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed","Item":` + string(w.item) + `}`
	}
	return `{}`
}

// tenAttempts is a budget that ends a decision that would never end.
type tenAttempts int

// Next implements [ratelimit.Budget].
func (n *tenAttempts) Next(context.Context, bool) bool {
	*n++
	return *n <= 10
}

// A draw makes an item of bytes, so that small changes of the bytes make other
// items and never broken JSON.
type draw struct{ left []byte }

func (d *draw) below(n int) int {
	if len(d.left) == 0 {
		return 0
	}
	b := d.left[0]
	d.left = d.left[1:]
	return int(b) % n
}

// item returns an item whose attributes have the names that the policy uses, and
// values of any type.
func (d *draw) item(p policy.Policy) map[string]any {
	names := []string{"ids", "i00", "i30", "expiresAt", "activity", "createdAt", "x", "", "i3", "top"}
	for _, n := range []int64{1, p.Max()} {
		if u, ok := p.Take(itemTime, n, 1, nil); ok {
			names = slices.AppendSeq(names, u.Attributes)
		}
	}
	for kept := range (ratelimit.Write{ID: ratelimit.NewID("r1"), Now: itemTime}).LookIn {
		names = append(names, kept.Set)
	}
	item := map[string]any{}
	for len(d.left) > 0 && len(item) < 120 {
		item[names[(d.below(256)+256*d.below(2))%len(names)]] = d.value()
	}
	return item
}

// value returns an attribute's value, as DynamoDB writes it.
func (d *draw) value() map[string]any {
	switch kind := d.below(16); kind {
	case 0:
		return map[string]any{"S": "3"}
	case 1:
		return map[string]any{"NULL": true}
	case 2:
		return map[string]any{"N": []string{"9.5", "1e30", "-0", "0.0", "12345678901234567890", "1E+2"}[d.below(6)]}
	case 3:
		return map[string]any{"BOOL": false}
	case 4:
		return map[string]any{"L": []any{map[string]any{"N": "1"}}}
	case 5:
		return map[string]any{"M": map[string]any{"ids": map[string]any{"N": "1"}}}
	case 6:
		return map[string]any{"NS": []string{"1", "2"}}
	case 7:
		return map[string]any{"B": []byte("12345678")}
	case 8, 9, 10:
		return map[string]any{"BS": d.ids()}
	default:
		return map[string]any{"N": strconv.FormatInt(d.number(), 10)}
	}
}

// number returns a whole number near one that matters, or any.
func (d *draw) number() int64 {
	near := []int64{0, 10, 100, itemTime, itemTime - 1_577_836_800_000, itemTime / 60_000 * 1_000_000, math.MaxInt64, math.MinInt64 + 3}
	base := near[d.below(len(near))]
	if d.below(8) == 0 && len(d.left) >= 8 {
		base = int64(binary.BigEndian.Uint64(d.left))
	}
	return base - int64(d.below(4))
}

// ids returns a set of ids: the request's own, others, and elements of a wrong
// length.
func (d *draw) ids() (set [][]byte) {
	own := ratelimit.NewID("r1")
	for i := range 1 + d.below(3) {
		element := slices.Clone(own[:])
		switch d.below(5) {
		case 0:
			element[0] += byte(i + 1)
		case 1:
			element = append(element, 0, 0, 1, 139, 207, 229, 104, byte(d.below(256)))
		case 2:
			element = element[:d.below(8)]
		case 3:
			element = append(element, 255, 255, 255, 255, 255, 255, 255, 255)
		}
		set = append(set, element)
	}
	return set
}

// Two different requests never count in the same item, unless the user, the
// activity and the window are the same. And each key shows its user, activity
// and window again, so no third request can have it either.
func FuzzKey(f *testing.F) {
	f.Add("u1", "u1", byte(0), byte(1), int64(1_700_000_040_000), int64(1_700_000_040_000))
	f.Add("u1#28333334", "u1", byte(0), byte(0), int64(0), int64(60_000))
	f.Add("a#create_post", "a", byte(3), byte(4), int64(-1), int64(1))
	f.Add("create_post#1", "config", byte(12), byte(13), int64(1)<<62, -int64(1)<<62)
	var activities []limits.Activity
	for _, g := range cricket.All {
		for _, a := range g.Activities {
			if !a.Unlimited {
				activities = append(activities, a)
			}
		}
	}
	f.Fuzz(func(t *testing.T, user1, user2 string, which1, which2 byte, now1, now2 int64) {
		one := keyOf(user1, activities[int(which1)%len(activities)], now1)
		two := keyOf(user2, activities[int(which2)%len(activities)], now2)
		for _, k := range []ratelimit.Key{one, two} {
			testkit.OK(t, input.CheckUserID(k.UserID))
			if shown, _ := Parse(Key(k)); shown != k {
				t.Fatalf("the key of %+v shows %+v", k, shown)
			}
		}
		if same := reflect.DeepEqual(Key(one), Key(two)); same != (one == two) {
			t.Fatalf("%+v and %+v have the same key: %v", one, two, same)
		}
	})
}

// keyOf returns the key of the item that counts a user's activity at now. It
// makes an id that guards accept of any text.
func keyOf(user string, a limits.Activity, now int64) ratelimit.Key {
	id := []byte(user)
	for i, c := range id {
		if c < '!' || c > '~' {
			id[i] = '!' + c%('~'-'!'+1)
		}
	}
	id = append(id, '!')
	window, _ := a.Limit.Item(max(0, now))
	return ratelimit.Key{UserID: string(id[:min(len(id), 128)]), Activity: a.Name, Window: window}
}
