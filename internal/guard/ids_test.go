package guard_test

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/limits"
)

// A user id has 1 to 128 characters, and every guard takes the longest ones. Ids
// that differ only in the last character are different users.
func TestAUserIdHasUpTo128Characters(t *testing.T) {
	for _, length := range []int{1, 128} {
		for _, g := range limits.All {
			b := newBench(t)
			b.Guard = g
			activity := g.Activities[0].Name
			user := strings.Repeat("u", length-1) + "1"
			for _, user := range []string{user, user[:length-1] + "2"} {
				event := `{"userId": "` + user + `", "activity": "` + activity + `"}`
				out, err := b.Invoke(t.Context(), []byte(event))
				if err != nil {
					t.Fatalf("%s, %d characters: %v", activity, length, err)
				}
				if got := parse(t, out); got["userId"] != user || got["allowed"] != true || got["activityCount"] != 1.0 {
					t.Errorf("%s, %d characters: %s, want one counted for this user", activity, length, out)
				}
			}
		}
	}
}
