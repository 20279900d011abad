package ratelimit_test

import (
	"context"
	"strconv"
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
	st := &slowTenant{Store: new(memstore.Store)}
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
	st.then = func() { c.add(time.Second); send(1000) }
	r := room()
	ten.ID = r.ID
	if d, err := l.DecideAll(t.Context(), Check, []Part{{Request: r, Subject: "room"}, {Request: ten, Subject: "tenant"}}, false); err != nil || d.Allowed {
		t.Fatal(d, err)
	}
	if send(3000); admitted > 2000 {
		t.Errorf("%d admitted in a window, want at most 2000", admitted)
	}
}

// slowTenant is a store in which something happens before the tenant's update.
type slowTenant struct {
	Store
	then func()
}

func (s *slowTenant) Update(ctx context.Context, w Write) (Item, bool, error) {
	if w.Key.UserID == " tenant acme" && s.then != nil {
		then := s.then
		s.then = nil
		then()
	}
	return s.Store.Update(ctx, w)
}

// A tier with a lower limit keeps its ids as long as the window lasts. They make a key of a
// prepaid tier no busier.
func TestIDsOfAnotherTierMakeNoKeyHot(t *testing.T) {
	c := newClock()
	l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
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
