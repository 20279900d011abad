package cleanup_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
)

// With CleanupConcurrency=0, runs can overlap. Two sweeps and an erasure at once, beside
// users who act, delete what has expired, and nothing else.
func TestRunsThatOverlapHarmNothing(t *testing.T) {
	c := newCrowd(t)
	const stale, kept, erased = 3_000, 200, 30
	old, live := c.template(t, time.Now().Add(-60*24*time.Hour)), c.template(t, c.now)
	c.fill(t, "kept", kept, live)
	before := c.kept(t)
	c.fill(t, "stale", stale, old)
	for i := range erased { // a user with an expired item and one in use
		c.fill(t, fmt.Sprint("gone", i, "-"), 1, old[:1])
		c.fill(t, fmt.Sprint("gone", i, "-"), 1, live[1:2])
	}
	for i := range 500 {
		c.asked = append(c.asked, asked{user: fmt.Sprint("stale", 3*i+1), act: 1}, asked{user: fmt.Sprint("stale", 3*i+2), act: 2})
	}
	rand.Shuffle(len(c.asked), func(i, j int) { c.asked[i], c.asked[j] = c.asked[j], c.asked[i] })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	acted := make(chan error, 1)
	go func() { acted <- c.act(ctx) }()

	run := func(r Request) (Answer, error) {
		return (&Cleanup{Table: table.New(c.store.Table())}).Run(t.Context(), r)
	}
	answers := make(chan Answer, 3)
	for i := range 3 {
		go func() {
			var a Answer
			var err error
			for n := range erased {
				switch {
				case i < 2 && n > 0: // a sweep
				case i < 2:
					a, err = run(Request{})
				default:
					_, err = run(Request{UserID: fmt.Sprint("gone", n, "-0")})
				}
				if err != nil {
					t.Error(err)
				}
			}
			answers <- a
		}()
	}
	deleted := int64(0)
	for range 3 {
		deleted += (<-answers).Deleted
	}
	stop()
	if err := <-acted; err != nil {
		t.Error(err)
	}
	c.judge(t)
	if deleted < stale-1_000 || deleted > 2*(stale+erased) { // users act on up to 1,000 of the items; both can find an item gone
		t.Errorf("two sweeps found %d items gone, want %d or somewhat more", deleted, stale+erased)
	}
	if left := c.scan(t, "expiresAt < :now OR begins_with(userId, :gone)", attributes{":now": dynamostore.Number(time.Now().Unix()), ":gone": dynamostore.Text("gone")}); len(left) > 0 {
		t.Errorf("%d items are left, such as %v", len(left), left[0])
	}
	after := c.kept(t)
	for user, item := range before {
		if !reflect.DeepEqual(item, after[user]) {
			t.Errorf("the item of %q has changed from %v to %v", user, item, after[user])
		}
	}
}
