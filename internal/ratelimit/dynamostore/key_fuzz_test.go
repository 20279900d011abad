package dynamostore_test

import (
	"reflect"
	"testing"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

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
			if err := input.CheckUserID(k.UserID); err != nil {
				t.Fatal(err)
			}
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
