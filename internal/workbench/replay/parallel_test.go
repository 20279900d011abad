package replay_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// The requests of many users are decided at the same time, with the same result
// as one after the other.
func TestManyUsersAreDecidedAsOneAfterTheOther(t *testing.T) {
	const users, requests = 300, 20_000
	p := policy.Must("log 5/1m")
	var text strings.Builder
	text.WriteString("time,user,activity\n")
	check, random, at := Check(p, false), rand.New(rand.NewPCG(1, 2)), int64(1_767_571_200_000)
	want := Report{From: at, Requests: requests, Users: users}
	heldUp := map[string]bool{}
	for i := range int64(requests) {
		at += i % 7
		line := traffic.Line{Time: at, User: fmt.Sprint("u", random.IntN(users)), Activity: "act"}
		fmt.Fprintf(&text, "%d,%s,act\n", line.Time, line.User)
		if d := check(line); d.Allowed {
			want.Allowed++
		} else {
			want.Refused++
			heldUp[line.User] = true
			want.LongestWaitMs = max(want.LongestWaitMs, d.Wait.Milliseconds())
		}
	}
	want.To, want.HeldUp = at, int64(len(heldUp))
	r := Replay{Activity: "act", Policy: p}
	got, err := r.Run(t.Context(), traffic.NewReader(traffic.Options{}, traffic.File{Name: "t.csv", Text: strings.NewReader(text.String())}))
	if err != nil {
		t.Fatal(err)
	}
	figures := func(r *Report) []int64 {
		return []int64{r.From, r.To, r.Requests, r.Allowed, r.Refused, r.LongestWaitMs, r.Users, r.HeldUp}
	}
	if got, want := fmt.Sprint(figures(got)), fmt.Sprint(figures(&want)); got != want || len(heldUp) == 0 {
		t.Errorf("%s, want %s", got, want)
	}
}
