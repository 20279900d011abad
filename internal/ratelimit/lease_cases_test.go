package ratelimit_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
	"github.com/cric-talk/guards/internal/testkit"
)

// call returns a request for one action of a hot key.
func call(p policy.Policy, id int) Request {
	return Request{UserID: "hot", Activity: "call", Policy: p, Count: 1, ID: strconv.Itoa(id), Fallback: true}
}

// leased returns the limits of a text, all prepaid.
func leased(text string) policy.Policy {
	return policy.Must(strings.ReplaceAll(text, ",", " prepaid,") + " prepaid")
}

// heat sends n checks, one each millisecond, and returns the decisions.
func heat(t *testing.T, l *Limiter, c *clock, p policy.Policy, from, n int) (all []Decision) {
	t.Helper()
	for i := range n {
		c.add(time.Millisecond)
		all = append(all, mustCheck(t, l, call(p, from+i)))
	}
	return all
}

// Up to a hundred requests, a prepaid key keeps each promise of another one: receipts,
// repeats and releases. Then leases begin, and a repeat from before is still known.
func TestAPrepaidKeyBeginsAsAnother(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, text := range []string{"2000/1m", "bucket 1000/1h burst 2000", "sliding 2000/1m", "a: 2000/1m, b: bucket 1000/1h burst 2000"} {
			p, c := leased(text), newClock()
			l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
			ask := func(op Op, id string, at int64) Decision {
				t.Helper()
				c.add(time.Millisecond)
				return mustDo(t, l, op, Request{UserID: "hot " + text, Activity: "call", Policy: p, Count: 1, ID: id, At: at})
			}
			for i := range 99 {
				if d := ask(Check, strconv.Itoa(i), 0); d.At == 0 || d.Leased || d.Requests != 1 {
					t.Fatalf("%s: check %d: %+v, want a receipt after one request", text, i, d)
				}
			}
			if d := ask(Check, "5", 0); d.Reason != Duplicate {
				t.Errorf("%s: a repeat: %+v", text, d)
			}
			d := ask(Check, "99", 0)
			if back := ask(Release, "99", d.At); back.Used != 99 {
				t.Errorf("%s: %d are used after a release, want 99", text, back.Used)
			}
			before, requests := 99, 0
			for i := range 300 {
				d := ask(Check, "hot "+strconv.Itoa(i), 0)
				if requests += d.Requests; !d.Allowed || (d.Leased || d.Acquired) && d.At != 0 {
					t.Fatalf("%s: %+v, want an admission, without a receipt if it is leased", text, d)
				}
				before++
			}
			if requests > 60 {
				t.Errorf("%s: 300 decisions took %d requests", text, requests)
			}
			if d := ask(Check, "5", 0); d.Reason != Duplicate {
				t.Errorf("%s: a repeat from before: %+v", text, d)
			}
			if d := ask(Status, "s", 0); d.Used < int64(before) && text[0] != 'b' && text[0] != 'a' {
				t.Errorf("%s: the item counts %d, and %d were admitted", text, d.Used, before)
			}
		}
	})
}

// A reset forgets what this instance holds of a lease.
func TestAResetForgetsALease(t *testing.T) {
	p := leased("2000/1m")
	l, c := instance(new(memstore.Store))
	heat(t, l, c, p, 0, 500)
	mustDo(t, l, Reset, call(p, 0))
	if d := heat(t, l, c, p, 1000, 1)[0]; d.Requests != 1 || d.Used != 1 {
		t.Errorf("after a reset: %+v, want a new item", d)
	}
}

// After a refusal of a hot key, the memory refuses until the next visit. The wait is at least that
// long. The limit that refuses has that wait, too, even if actions come back meanwhile.
func TestARefusalOfAHotKey(t *testing.T) {
	for _, text := range []string{"bucket 1000/1s burst 1500", "sliding 1000/1s", "200/1s", "a: bucket 200/10s, b: 9000/1d"} {
		p := leased(text)
		l, c := instance(new(memstore.Store))
		refused, requests := 0, 0
		for id := range 8000 {
			c.add(time.Millisecond / 4)
			d := mustCheck(t, l, call(p, id))
			if d.Allowed {
				continue
			}
			refused, requests = refused+1, requests+d.Requests
			until, _ := p.Lease(c.now().UnixMilli())
			if d.Requests > 0 && d.Wait < min(time.Second, time.UnixMilli(until).Sub(c.now())) {
				t.Fatalf("%s: %+v, want the time until the next visit", text, d)
			}
			if d.Wait <= 0 || d.Limits()[0].Wait != d.Wait {
				t.Fatalf("%s: %+v, want the wait of the answer beside the limit that refuses", text, d)
			}
		}
		if refused == 0 || requests > 20 {
			t.Errorf("%s: %d refusals of 2 s took %d requests", text, refused, requests)
		}
	}
}

// A key whose limit is used up is asked for more than ten seconds, until actions come back
// one by one. It is still hot, so it is visited at most a few times a second, and not for each.
func TestAKeyStaysHotWhileItRefuses(t *testing.T) {
	testkit.Long.Need(t)
	p, c, requests := leased("sliding 1000/1m"), newClock(), 0
	l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
	for i, d := range heat(t, l, c, p, 0, 120_000) {
		if i >= 2000 {
			requests += d.Requests
		}
	}
	if requests > 500 {
		t.Errorf("two minutes took %d requests, want at most a few a second", requests)
	}
}

// hotRoom is the limit of a prepaid room. A lease is of one policy, so it is read once.
var hotRoom = leased("20000/1m")

// inHotRoom returns the parts of a message in a prepaid room of a tenant.
func inHotRoom(user, id, tenant, limit string) []Part {
	parts := message(user, "hot", id, "60/1m", limit)
	wide := parts[1]
	wide.UserID, wide.Subject = " tenant "+tenant, "tenant"
	parts[1].Policy = hotRoom
	return append(parts, wide)
}

// A room is prepaid, and its users are not. Each user's limit is exact, a message costs
// one write, and what a refusal by a user or another subject undoes goes back into the
// lease. The receipt is about the user's count.
func TestAHotRoom(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		l, c := instance(store)
		decide := func(user, id int) Decision {
			t.Helper()
			c.add(time.Millisecond)
			return doAll(t, l, Check, inHotRoom("u"+strconv.Itoa(user), strconv.Itoa(id), "acme", "350/1m"), 0)
		}
		admitted, leased := map[int]int{}, 0
		for id := range 700 {
			user := id % 5
			if d := decide(user, id); d.Allowed {
				admitted[user]++
				if d.Leased {
					leased++
				}
				if d.At == 0 {
					t.Fatalf("%+v, want the receipt of the user and the tenant", d)
				}
			}
		}
		for user, n := range admitted {
			if n != 60 {
				t.Errorf("user %d: %d were admitted, want 60", user, n)
			}
		}
		if leased < 150 {
			t.Errorf("%d decisions were leased, want most of 300", leased)
		}
		for user := 10; user < 12; user++ { // 350 of the tenant: what it refuses goes back into the lease
			for id := range 40 {
				decide(user, 1000*user+id)
			}
		}
		if used := usedIn(t, store, inHotRoom("", "", "acme", "350/1m")[1], c); used < 350 || used > 420 {
			t.Errorf("the room counts %d, want the 350 that were admitted and a lease", used)
		}
	})
}

// Activities of a group, and tiers, have leases of their own in one item.
func TestLeasesInAGroup(t *testing.T) {
	l, c := instance(new(memstore.Store))
	all := policy.Must("writes: 3000/1m prepaid")
	costly, plain := policy.Must("writes: 3000/1m cost 5 prepaid"), policy.Must("writes: 3000/1m")
	taken, requests := int64(0), 0
	for i := range 3000 {
		c.add(time.Millisecond)
		r := call([]policy.Policy{all, costly, plain}[i%3], i)
		r.Group, r.Activity = "content", []string{"post", "export", "comment"}[i%3]
		d := mustCheck(t, l, r)
		if (d.Leased || d.Acquired) && i%3 == 2 {
			t.Fatalf("%+v, want no lease for an ordinary limit", d)
		}
		if d.Allowed {
			taken += []int64{1, 5, 1}[i%3]
		}
		if i%3 != 2 {
			requests += d.Requests
		}
	}
	if taken > 3000 || taken < 2900 || requests > 200 {
		t.Errorf("%d of 3000 were taken, and the prepaid ones took %d requests", taken, requests)
	}
}

// An outcome that is unknown loses at most the lease, and the request is counted by its id.
func TestALostVisit(t *testing.T) {
	p, c := leased("2000/1m"), newClock()
	flaky := &storetest.Metered{Store: new(memstore.Store)}
	l := &Limiter{Store: flaky, Now: c.now, Memory: NewMemory(mib), NewBudget: noPauses(4)}
	heat(t, l, c, p, 0, 400)
	lost := 0
	flaky.Lose = func() bool { lost++; return lost == 1 }
	for i := range 1500 {
		c.add(time.Millisecond)
		d := mustCheck(t, l, call(p, 5000+i))
		if !d.Allowed {
			t.Fatalf("%+v", d)
		}
		if d.Requests == 2 { // the visit was lost, and a write of its own followed
			if d.Acquired || d.At == 0 {
				t.Errorf("%+v, want a receipt", d)
			}
			return
		}
	}
	t.Error(errors.New("no visit was lost"))
}

// A visit that is refused returns what it held of the lease, even if another one has been counted
// meanwhile. The next requests take exactly that from memory.
func TestARefusedVisitReturnsWhatItHeld(t *testing.T) {
	p, c := leased("2000/1m"), clockAt(start)
	st := &hooked{Store: new(memstore.Store)}
	l := &Limiter{Store: st, Now: c.now, Memory: NewMemory(mib)}
	held := func() int64 {
		window, _ := p.Item(c.now().UnixMilli())
		left, _ := l.Memory.Recall(Key{UserID: "hot", Activity: "call", Window: window}).Held(c.now().UnixMilli())
		return left
	}
	used := int64(0)
	for id := 0; held() < 5; id++ {
		used = heat(t, l, c, p, id, 1)[0].Used
	}
	rest := call(p, 5000)
	rest.Count, rest.ID = 2000-used-1, "the rest but one"
	mustCheck(t, &Limiter{Store: st.Store, Now: c.now}, rest)

	before, counted := held(), false
	st.before = func(Write) error {
		st.before = nil
		d := heat(t, l, c, p, 6000, 1)[0]
		counted = d.Allowed && !d.Leased
		return nil
	}
	large := call(p, 7000)
	large.Count = before + 2
	if d := mustCheck(t, l, large); d.Allowed || !counted || held() != before {
		t.Fatalf("%+v, another one meanwhile was counted: %v, and %d are held, want a refusal and %d", d, counted, held(), before)
	}
	for i := range before {
		if d := mustCheck(t, l, call(p, 8000+int(i))); !d.Leased {
			t.Errorf("request %d of %d: %+v, want it from the lease", i, before, d)
		}
	}
	mustRefuse(t, l, []Part{{Request: call(p, 9000)}}, "", "the limit is used up")
}

// A room lends, and then the tenant refuses. What the room lent goes back into the lease,
// so a hundred refusals take nothing from the room.
func TestALeaseGetsBackWhatWasRefused(t *testing.T) {
	store, c := new(memstore.Store), newClock()
	l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
	refused := func(id int) []Part {
		return inHotRoom("u"+strconv.Itoa(id), strconv.Itoa(id), "t"+strconv.Itoa(id), "1/1m")
	}
	full := &Limiter{Store: store, Now: c.now}
	for id := range 170 {
		c.add(time.Millisecond)
		mustDoAll(t, l, Check, refused(id)[:2], 0, "without a tenant")
		if id >= 70 { // the tenants of the next hundred have nothing left
			r := refused(id + 1000)[2].Request
			r.ID, r.For = "full", "somebody"
			mustCheck(t, full, r)
		}
	}
	before := usedIn(t, store, refused(0)[1], c)
	for id := 1070; id < 1170; id++ {
		mustRefuse(t, l, refused(id), "tenant", "a full tenant")
	}
	mustCount(t, store, c, "after a hundred refusals", refused(0)[1:2], before)
}

// An instance takes a lease of a bucket, waits while the bucket fills, and hands it out
// beside a whole burst, also of an ordinary tier. Together that is what a bucket of this
// size allows.
func TestABucketKeepsBackWhatRefills(t *testing.T) {
	for text, pause := range map[string]time.Duration{"bucket 250/1s burst 1000": 900 * time.Millisecond, "bucket 250/1s burst 600": 520 * time.Millisecond} {
		ordinary := policy.Must(text)
		for _, tier := range []policy.Policy{leased(text), ordinary} {
			for first := 150; first <= 230; first += 40 {
				p, truth := leased(text), &judge{Policy: ordinary}
				l, c := instance(new(memstore.Store))
				admitted := 0
				ask := func(p policy.Policy, id int) {
					if !mustCheck(t, l, call(p, id)).Allowed {
						return
					}
					if !truth.admits(c.now().UnixMilli(), 1) {
						t.Fatalf("%s, %d at first, then %s: request %d is above the limit", text, first, tier, id)
					}
					admitted++
				}
				for id := range first {
					c.add(time.Millisecond / 10)
					ask(p, id)
				}
				c.add(pause)
				for id := range 1500 {
					ask(p, 10_000+id)
					ask(tier, 20_000+id)
				}
				c.add(time.Duration(ordinary.Rates()[0].Burst) * 5 * time.Millisecond) // nothing is lent any more
				truth.state, admitted = nil, 0
				for id := range 1100 {
					ask(ordinary, 30_000+id)
				}
				if want := ordinary.Rates()[0].Burst; int64(admitted) != want {
					t.Errorf("%s, %d at first: later an ordinary limit admits %d at once, want %d", text, first, admitted, want)
				}
			}
		}
	}
}

// Without leases, a busy key costs one write for each check, and no process holds anything of
// the limit. So of two processes, one that ends takes nothing away from the other.
func TestABusyKeyWithoutLeases(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for n, text := range []string{"500/1m", "bucket 500/1h", "sliding 500/1m", "a: 500/1m, b: bucket 600/1h"} {
			if n%testkit.Bound(3, 1) != 0 {
				continue
			}
			p, c := leased(text), newClock()
			instances := []*Limiter{{Store: store, Now: c.now, Memory: NewMemory(mib)}, {Store: store, Now: c.now, Memory: NewMemory(mib)}}
			for _, l := range instances {
				l.Memory.NoLeases = true
			}
			allowed, visits := 0, 0
			for i := range 600 {
				c.add(time.Millisecond)
				r := call(p, i)
				r.UserID += text
				d := mustCheck(t, instances[i%2], r)
				if d.Leased || d.Allowed && d.Requests > 2 || i > 150 && d.Allowed && d.Requests != 1 {
					t.Fatalf("%s: check %d: %+v, want one request of its own", text, i, d)
				}
				if d.Acquired {
					visits++
				}
				if d.Allowed {
					allowed++
				}
			}
			if most := int(p.Max()); allowed != most || visits < 300 { // a bucket keeps back what refills
				t.Errorf("%s: %d allowed, %d of them without an id, want %d and at least 300", text, allowed, visits, most)
			}
		}
	})
}
