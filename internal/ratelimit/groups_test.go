package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// Two activities of a group. A post takes 2 of what a comment takes 1 of.
var (
	posting    = policy.Must("posts: 10/1m, writes: 20/1h cost 2")
	commenting = policy.Must("comments: 60/1m, writes: 20/1h")
)

// inGroup returns a request of an activity of the group.
func inGroup(activity string, p policy.Policy, id string, n int64) Request {
	r := request(p.Beside(posting, commenting), id, n)
	r.Activity, r.Group = activity, "content"
	return r
}

func TestAGroup(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		l := &Limiter{Store: store, Now: newClock().now, Memory: NewMemory(mib), Timeout: 10 * time.Second}
		post := inGroup("create_post", posting, "r1", 1)
		first := mustCheck(t, l, post)
		comment := mustCheck(t, l, inGroup("add_comment", commenting, "r1", 1)) // the same id
		if first.Reason != OK || comment.Reason != OK || comment.Requests != 1 {
			t.Fatalf("%+v, %+v", first, comment)
		}
		// 3 of 20 are used. In posts these are 2 of 10, and 8 are left.
		if d := mustCheck(t, l, post); d.Reason != Duplicate || d.Each[0].Used != 1 || d.Each[1].Limit != 10 || d.Each[1].Used != 2 || d.Each[1].Remaining != 8 {
			t.Fatalf("%+v", d)
		}
		if d := mustCheck(t, l, inGroup("create_post", posting, "r2", 10)); d.Allowed || d.LimitedBy != "writes" {
			t.Fatalf("%+v", d)
		}
		post.At = first.At
		for range 2 {
			if d, err := l.Decide(t.Context(), Release, post); err != nil || d.Each[0].Used != 0 || d.Each[1].Used != 1 {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		if d, err := l.Decide(t.Context(), Status, inGroup("add_comment", commenting, "s", 1)); err != nil || d.Each[0].Used != 1 || d.Each[1].Used != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
		mustDo(t, l, Reset, post)
		if d := mustCheck(t, l, inGroup("add_comment", commenting, "r3", 1)); d.Each[0].Used != 1 || d.Each[1].Used != 1 {
			t.Fatalf("after a reset by the other activity: %+v", d)
		}
	})
}

// Both activities of a group have a request of the same id and millisecond. Each is renewed and
// released by itself.
func TestTheSameIDInBothActivitiesOfAGroup(t *testing.T) {
	c, store := newClock(), new(memstore.Store)
	l := &Limiter{Store: store, Now: c.now, NewBudget: noPauses(9)}
	slots := policy.Must("now: log 9/10m, day: 90/1d")
	var both []Request
	for _, activity := range []string{"export", "import"} {
		r := request(slots.Beside(slots), "r", 1)
		r.Activity, r.Group = activity, "work"
		r.At = mustCheck(t, l, r).At
		both = append(both, r)
	}
	c.add(time.Second)
	for i, r := range both {
		both[i].At = mustDo(t, l, Renew, r).At
	}
	for i, r := range both {
		if d := mustDo(t, l, Renew, r); !d.Allowed || d.At != both[i].At {
			t.Errorf("%s, the renewal again: %+v", r.Activity, d)
		}
	}
	for i, r := range both {
		if d := mustDo(t, l, Release, both[i]); d.Each[0].Used != int64(1-i) || d.Each[1].Used != int64(1-i) {
			t.Errorf("%s, a release: %+v", r.Activity, d.Each)
		}
	}
}

// An item of a group lasts as long as the longest limit of the group counts, whichever
// activity wrote it last.
func TestAGroupsItemLasts(t *testing.T) {
	store, expires := expiring()
	short, long := policy.Must("posts: 10/1m"), policy.Must("all: 100/1d")
	l := &Limiter{Store: store, Now: newClock().now}
	r := inGroup("create_post", short, "r1", 1)
	r.Policy = short.Beside(short, long)
	mustCheck(t, l, r)
	if _, want := long.Item(start.UnixMilli()); *expires != want {
		t.Errorf("the item expires at %d, want %d", *expires, want)
	}
}

// In an outage, both activities together get at most the budget.
func TestAGroupInAnOutage(t *testing.T) {
	l, f, _ := onClock(pass)
	mustCheck(t, l, inGroup("add_comment", commenting, "0", 5))
	f.set(deny)
	spent := 5
	for i := range 40 {
		r, cost := inGroup("add_comment", commenting, "c"+strconv.Itoa(i), 1), 1
		if i%3 == 0 {
			r, cost = inGroup("create_post", posting, "p"+strconv.Itoa(i), 1), 2
		}
		if mustCheck(t, l, r).Allowed {
			spent += cost
		}
	}
	if spent != 20 {
		t.Errorf("%d are spent, want 20", spent)
	}
}
