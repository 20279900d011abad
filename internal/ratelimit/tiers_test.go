package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// A limit that changes, or another tier, acts on what is counted already.
func TestAChangedLimitActsOnWhatIsCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to    string
		used        int
		left, after string // what the next request gets, and the first one above the new limit
	}{
		"window, raised":  {"10/1m", "20/1m", 10, "ok 11/20", "ok 12/20"},
		"window, lowered": {"20/1m", "10/1m", 15, "limited 15/10, wait 1m0s", ""},
		"bucket, raised":  {"bucket 10/1m", "bucket 20/1m", 10, "ok 11/20", "ok 12/20"},
		// 6 actions have to come back, at the new pace of one in 6 s.
		"bucket, lowered":   {"bucket 20/1m", "bucket 10/1m", 15, "limited 15/10, wait 36s", ""},
		"log, raised":       {"log 10/1h", "log 20/1h", 10, "ok 11/20", "ok 12/20"},
		"log, lowered":      {"log 20/1h", "log 10/1h", 15, "limited 15/10, wait 1h0m0s", ""},
		"counter, raised":   {"sliding 10/1h", "sliding 20/1h", 10, "ok 11/20", "ok 12/20"},
		"reservoir, raised": {"reservoir 2/10s ahead 1m", "reservoir 3/10s ahead 1m", 4, "delayed 3/3, wait 10s, place at 10s after 2", "delayed 3/3, wait 20s, place at 20s after 3"},
		// The window with three places gets no more.
		"reservoir, lowered": {"reservoir 3/10s ahead 1m", "reservoir 2/10s ahead 1m", 6, "delayed 2/2, wait 20s, place at 20s after 2", "delayed 2/2, wait 20s, place at 20s after 3"},
		"several, raised":    {"minute: 10/1m, bucket: bucket 10/1m", "minute: 20/1m, bucket: bucket 20/1m", 10, "ok 11/20", "ok 12/20"},
		"several, lowered":   {"minute: 20/1m, bucket: bucket 20/1m", "minute: 10/1m, bucket: bucket 10/1m", 15, "limited 15/10, wait 1m0s for the minute", ""},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := policy.Must(tt.from), policy.Must(tt.to)
			testkit.OK(t, policy.CompatibleTiers(from, to))
			l, c := instance(new(memstore.Store))
			for i := range tt.used {
				mustCheck(t, l, request(from, strconv.Itoa(i), 1))
			}
			for i, want := range []string{tt.left, tt.after} {
				d := mustCheck(t, l, request(to, "n"+strconv.Itoa(i), 1))
				if got := inWords(d); got != want {
					t.Errorf("%s, want %s", got, want)
				}
				if d.Remaining < 0 {
					t.Errorf("%d remain", d.Remaining)
				}
				if d.Wait == 0 || d.Reason == Delayed {
					continue
				}
				c.add(d.Wait - time.Millisecond)
				for _, allowed := range []bool{false, true} { // the wait is exact
					if d := mustDo(t, l, Status, request(to, "w", 1)); d.Allowed != allowed {
						t.Errorf("at %v: %s, want allowed %v", c.now().Sub(start), inWords(d), allowed)
					}
					c.add(time.Millisecond)
				}
				return
			}
		})
	}
}

// A lower pace holds from its first decision on, even if that is a refusal.
func TestALowerPaceHoldsFromItsFirstDecision(t *testing.T) {
	for _, by := range []string{"", "cold"} {
		timeline(t, "bucket 10/1m", []moment{
			{id: "a", by: by, count: 10, want: "ok 10/10"},
			{at: sec, by: by, ask: Status, id: "b", limit: "bucket 10/1d", want: "limited 10/10, wait 2h0m0s"},
			{at: sec, by: by, id: "b", want: "limited 10/10, wait 2h0m0s"},
			{at: 60 * sec, by: by, id: "c", count: 10, want: "limited 10/10, wait 23h35m1s"},
			{at: 60 * sec, by: by, id: "d", want: "limited 10/10, wait 1h59m1s"},
			{at: 2*time.Hour + sec, by: by, id: "e", want: "ok 10/10"},
		})
		timeline(t, "slow: bucket 10/1m, hour: 20/1h", []moment{
			{id: "a", by: by, count: 10, want: "ok 10/10", used: []int64{10, 10}},
			{at: sec, by: by, id: "b", limit: "hour: 20/1h, slow: bucket 10/1d", want: "limited 10/10, wait 2h0m0s for the slow"},
			{at: 61 * sec, by: by, id: "c", want: "limited 10/10, wait 1h59m0s for the slow", used: []int64{10, 10}},
		})
	}
}

// The first refusal by a lower pace takes one request more, and the next ones as many as ever.
func TestWhatALowerPaceCosts(t *testing.T) {
	timeline(t, "bucket 10/1m", []moment{
		{id: "a", count: 10, want: "ok 10/10"},
		{at: 2 * sec, id: "b", count: 5, limit: "bucket 10/1d", sent: 2, want: "limited 10/10, wait 11h12m0s"},
		{at: 2 * sec, id: "c", count: 5, sent: none, want: "limited 10/10, wait 11h12m0s"},
		{at: 4 * sec, id: "d", count: 5, sent: 1, want: "limited 10/10, wait 11h11m58s"},
	})
}

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
