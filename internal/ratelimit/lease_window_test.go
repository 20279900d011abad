package ratelimit_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// The window turns while the tenant refuses. What the room lent in the old window must not
// go into the new window's lease.
func TestPutBackAfterTheWindowTurned(t *testing.T) {
	c := clockAt(start.Add(59 * time.Second))
	st := &hooked{Store: new(memstore.Store)}
	l := &Limiter{Store: st, Now: c.now, Memory: NewMemory(mib)}
	p, id, admitted := leased("2000/1m"), 0, 0
	room := func() Request {
		id++
		return Request{UserID: " room r", Activity: "write", Policy: p, Count: 1, ID: strconv.Itoa(id)}
	}
	for range 500 {
		c.add(time.Millisecond)
		mustCheck(t, l, room())
	}
	ten := Request{UserID: " tenant acme", Activity: "write", Policy: policy.Must("1/1h"), Count: 1, ID: "full"}
	mustCheck(t, &Limiter{Store: st, Now: c.now}, ten)
	send := func(n int) {
		for range n {
			c.add(time.Millisecond)
			if mustCheck(t, l, room()).Allowed {
				admitted++
			}
		}
	}
	st.before = once(func(w Write) bool { return w.Key.UserID == ten.UserID }, func() { c.add(time.Second); send(1000) })
	r := room()
	ten.ID = r.ID
	if d, err := l.DecideAll(t.Context(), Check, []Part{{Request: r, Subject: "room"}, {Request: ten, Subject: "tenant"}}, false); err != nil || d.Allowed {
		t.Fatal(d, err)
	}
	if send(3000); admitted > 2000 {
		t.Errorf("%d admitted in a window, want at most 2000", admitted)
	}
}

// A new window begins with the pace of the last one, so no instance writes a hundred ids
// again.
func TestANewWindowBeginsWithThePaceOfTheLast(t *testing.T) {
	p := leased("6000/1s")
	l, c := instance(new(memstore.Store))
	requests := map[int64]int{} // by window
	for _, d := range heat(t, l, c, p, 0, 2999) {
		requests[d.WindowKey] += d.Requests
	}
	first := start.Unix()
	if requests[first] < 100 || requests[first+1] > 30 || requests[first+2] > 30 {
		t.Errorf("three windows took %v requests, want a hundred in the first only", requests)
	}
}

// An instance takes what it will probably use in the next second, however long a key is busy. So
// an instance that dies, or stands idle, loses no more.
func TestALeaseIsWhatASecondUses(t *testing.T) {
	p := leased("600000/1h")
	l, c := instance(new(memstore.Store))
	window, _ := p.Item(c.now().UnixMilli())
	most := int64(0)
	for i := range 2000 {
		c.add(10 * time.Millisecond)
		mustCheck(t, l, call(p, i))
		left, _ := l.Memory.Recall(Key{UserID: "hot", Activity: "call", Window: window}).Held(c.now().UnixMilli())
		most = max(most, left)
	}
	if most < 90 || most > 110 {
		t.Errorf("of 100 requests a second, up to %d are held, want about 100", most)
	}
}

// A tier with a lower limit keeps its ids as long as the window lasts. They make a key of a
// prepaid tier no busier.
func TestIDsOfAnotherTierMakeNoKeyHot(t *testing.T) {
	l, c := instance(new(memstore.Store))
	low, high := policy.Must("100/1d"), policy.Must("6000/1d prepaid")
	for i := range 100 {
		c.add(5 * time.Second)
		mustCheck(t, l, call(low, i))
	}
	c.add(time.Hour)
	none := 0
	for i := range 200 {
		c.add(9 * time.Second)
		if d := mustCheck(t, l, call(high, 1000+i)); d.At == 0 {
			none++
		}
	}
	if none > 0 {
		t.Errorf("%d of 200 checks, one each 9 s, have no receipt", none)
	}
}

// Held is what an instance can still hand out of a key, and until when, over the limits of all
// tiers. The next requests take exactly that from memory.
func TestHeldIsWhatIsHandedOut(t *testing.T) {
	for text, lasts := range map[string]time.Duration{"2000/1m": time.Minute, "bucket 1000/1h burst 2000": time.Second} {
		p, higher, c := leased(text), leased(strings.Replace(text, "2000", "3000", 1)), newClock()
		l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
		window, _ := p.Item(c.now().UnixMilli())
		key := Key{UserID: "hot", Activity: "call", Window: window}
		held := func() (left, until int64) { return l.Memory.Recall(key).Held(c.now().UnixMilli()) }
		if left, until := held(); left != 0 || until != 0 {
			t.Errorf("%s: before the first request, %d are held until %d", text, left, until)
		}
		heat(t, l, c, p, 0, 99)
		if left, _ := held(); left != 0 {
			t.Errorf("%s: %d are held, although each request was counted alone", text, left)
		}
		for i := 99; ; i++ {
			d := heat(t, l, c, p, i, 1)[0]
			if left, _ := held(); d.Acquired && left > 5 {
				break
			}
		}
		left, until := held()
		if end := c.now().Add(lasts).UnixMilli(); until > end || until < end-lasts.Milliseconds() || until <= c.now().UnixMilli() {
			t.Errorf("%s: held until %d at %d", text, until, c.now().UnixMilli())
		}
		heat(t, l, c, higher, 2000, 1) // its own lease, beside p's lease
		if both, _ := held(); both < left {
			t.Errorf("%s: %d are held after a request of another tier, want at least the %d of the first", text, both, left)
		}
		others, _ := held()
		others -= left
		for i := range left {
			if d, err := l.Check(t.Context(), call(p, 3000+int(i))); err != nil || !d.Leased {
				t.Fatalf("%s: request %d of %d: %+v, %v, want it from the lease", text, i, left, d, err)
			}
		}
		if now, _ := held(); now != others {
			t.Errorf("%s: %d are held after all are handed out, want the %d of the other tier", text, now, others)
		}
		heat(t, l, c, p, 4000, 50)
		c.add(lasts)
		if left, until := held(); left != 0 || until != 0 {
			t.Errorf("%s: %d are held until %d, after the end of the lease", text, left, until)
		}
	}
}

// A visit counts more than its request, and crosses with all of it. So a busy key says 80 and
// 100 once, too.
func TestAVisitCrossesWithWhatItTook(t *testing.T) {
	for _, text := range []string{"5000/1m", "15001/1m cost 3", "day: 100000/1d, minute: 5000/1m"} {
		p, c := leased(text), clockAt(start)
		l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
		crossed, byVisit := map[int64]int{}, 0
		for i, d := range heat(t, l, c, p, 0, 6000) {
			for _, share := range shares(d) {
				if crossed[share]++; d.Acquired {
					byVisit++
				}
				if d.Leased || !d.Allowed {
					t.Errorf("%s: request %d crossed %d: %+v, want that of the visit", text, i, share, d)
				}
			}
		}
		if crossed[80] != 1 || crossed[100] != 1 || byVisit == 0 {
			t.Errorf("%s: 80 and 100 were crossed %v times, %d by a visit, want once each", text, crossed, byVisit)
		}
	}
}

// A lease ends with the shortest window of its limits, whatever their order.
func TestALeaseEndsWithTheShortestWindow(t *testing.T) {
	for _, text := range []string{
		"day: 100000/1d, minute: 400/1m", "minute: 400/1m, day: 100000/1d", "hour: sliding 100000/1h, minute: 400/1m",
		"day: 100000/day in Europe/Berlin, minute: 400/1m",
	} {
		c := clockAt(start.Add(59*time.Second + 700*time.Millisecond))
		p, l := leased(text), &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
		leased, admitted := 0, 0
		for _, d := range heat(t, l, c, p, 0, 299) {
			if d.Leased {
				leased++
			}
		}
		if leased < 50 {
			t.Fatalf("%s: only %d were leased before the minute ends", text, leased)
		}
		for _, d := range heat(t, l, c, p, 1000, 1000) {
			if d.Allowed {
				admitted++
			}
		}
		if admitted > 400 {
			t.Errorf("%s: %d were admitted in the next minute, want at most 400", text, admitted)
		}
	}
}

// While a visit is under way, another one takes the next lease. What both left is handed out
// until the earlier of them ends. Otherwise it would run beside a bucket that has refilled.
func TestTwoLeasesEndWithTheEarlierOne(t *testing.T) {
	const text = "bucket 250/1s burst 1000"
	for wait := 100 * time.Millisecond; wait < time.Second; wait += 50 * time.Millisecond {
		p, truth, c := leased(text), judge{Policy: policy.Must(text)}, newClock()
		st := &hooked{Store: new(memstore.Store)}
		l, id, both := &Limiter{Store: st, Now: c.now, Memory: NewMemory(mib)}, 0, false
		send := func(n int, pause time.Duration) {
			for range n {
				c.add(pause)
				id++
				if mustCheck(t, l, call(p, id)).Allowed && !truth.admits(c.now().UnixMilli(), 1) {
					t.Fatalf("%v after the second lease, request %d is above the limit", wait, id)
				}
			}
		}
		send(260, 2*time.Millisecond)
		st.after = func(w Write, done bool) {
			if visits := done && w.ID == (ID{}); visits && !both { // before its answer arrives
				both = true
				c.add(900 * time.Millisecond)
				send(2, 0)
			}
		}
		for !both {
			send(1, 2*time.Millisecond)
		}
		c.add(wait)
		send(2000, 0)
	}
}
