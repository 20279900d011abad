package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/limits"
)

// A user id has 1 to 128 characters, and every operation of every guard takes
// the longest ones. Ids that differ only in the last character are different
// users.
func TestAUserIdHasUpTo128Characters(t *testing.T) {
	for _, length := range []int{1, 36, 37, 128} {
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

func TestALongUserIdCanReleaseAndReset(t *testing.T) {
	user := strings.Repeat("u", 128)
	b := newBench(t)
	event := `{"userId": "` + user + `", "activity": "create_post"`
	for _, step := range []struct {
		members string
		used    float64
	}{
		{`, "requestId": "r1", "count": 4}`, 4},
		{`, "op": "release", "requestId": "r1", "at": 1700000040000}`, 3},
		{`, "op": "status"}`, 3},
		{`, "op": "reset"}`, 0},
	} {
		out, err := b.Invoke(t.Context(), []byte(event+step.members))
		if err != nil || parse(t, out)["activityCount"] != step.used {
			t.Errorf("%s: %s, %v, want %v counted", step.members, out, err, step.used)
		}
	}
}

func TestALongUserIdOverHTTP(t *testing.T) {
	for length, want := range map[int]float64{36: 200, 37: 200, 128: 200, 129: 400} {
		b := newBench(t)
		status, _, got := b.call("POST", `{"userId": "`+strings.Repeat("u", length)+`", "activity": "create_post"}`, false)
		if status != want {
			t.Errorf("%d characters: %v %v, want %v", length, status, got, want)
		}
	}
}

func TestAUserIdOf129CharactersIsRefused(t *testing.T) {
	for _, length := range []int{0, 129, 1000} {
		b := newBench(t)
		event := `{"userId": "` + strings.Repeat("u", length) + `", "activity": "create_post"}`
		out, err := b.Invoke(t.Context(), []byte(event))
		if e, ok := errors.AsType[*input.ValidationError](err); !ok || e.Field != "userId" || b.store.asked != 0 || strings.Contains(err.Error(), "uu") {
			t.Errorf("%d characters: %s, %v, want a ValidationError of userId without its value", length, out, err)
		}
	}
}

func TestARequestIdHasUpTo64Characters(t *testing.T) {
	for length, valid := range map[int]bool{1: true, 64: true, 65: false} {
		b := newBench(t)
		event := `{"requestId": "` + strings.Repeat("r", length) + `"}`
		got, err := b.ask(event)
		switch {
		case !valid:
			b.wantInvalid(event, "requestId", err)
		case err != nil || got["requestId"] != strings.Repeat("r", length):
			t.Errorf("%d characters: %v, %v, want a receipt with this id", length, got, err)
		}
	}
}
