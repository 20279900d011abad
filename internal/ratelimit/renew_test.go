package ratelimit_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// mustDo decides op and fails the test if there is an error.
func mustDo(t *testing.T, l *Limiter, op Op, r Request) Decision {
	t.Helper()
	d, err := l.Decide(t.Context(), op, r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A slot is renewed again and again, freed, and then it is gone.
func TestASlotIsRenewed(t *testing.T) {
	for _, text := range []string{"log 2/10m", "now: log 2/10m, day: 9/1d", "log 4/10m cost 2"} {
		onEachStore(t, func(t *testing.T, store Store) {
			c := newClock()
			l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib), Timeout: 10 * time.Second}
			r := request(policy.Must(text), "r1", 1)
			r.At = mustCheck(t, l, r).At
			first := r.At
			mustCheck(t, l, request(r.Policy, "r2", 1))
			if d := mustCheck(t, l, request(r.Policy, "r3", 1)); d.Allowed {
				t.Fatalf("%s: %+v", text, d)
			}
			for i := range 4 { // 20 minutes in all
				c.add(5 * time.Minute)
				d, again := mustDo(t, l, Renew, r), mustDo(t, l, Renew, r)
				if !d.Allowed || d.Reason != OK || d.At != c.now().UnixMilli() || d.Requests != 2 || again.At != d.At || !again.Allowed || again.Requests != 1 {
					t.Fatalf("%s, renewal %d: %+v; again %+v", text, i, d, again)
				}
				r.At = d.At
			}
			if d := mustDo(t, l, Status, r); d.Remaining != 1 {
				t.Fatalf("%s: %+v, want one slot left, because r2 has expired", text, d)
			}
			old := r
			old.At = first
			if d := mustDo(t, l, Renew, old); d.At != r.At {
				t.Fatalf("%s, with the first receipt: %+v", text, d)
			}
			c.add(time.Minute) // the item has forgotten the id
			if d := mustDo(t, l, Renew, old); d.Allowed || d.Reason != Expired || d.Granted != 0 || d.At != 0 {
				t.Fatalf("%s: %+v", text, d)
			}
			for range 2 {
				if d := mustDo(t, l, Release, r); d.Remaining != 2 {
					t.Fatalf("%s: %+v", text, d)
				}
			}
			if d := mustDo(t, l, Renew, r); d.Reason != Expired {
				t.Fatalf("%s: %+v", text, d)
			}
		})
	}
}

// The answer to a renewal is lost. The old receipt still renews and releases, also on
// an instance whose clock is 2 s behind.
func TestALostRenewalCostsNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, op := range []Op{Renew, Release} {
			c, behind := newClock(), newClock()
			c.at(2 * time.Second)
			r := request(policy.Must("log 2/10s"), string(op), 1)
			r.UserID = string(op)
			r.At = mustCheck(t, &Limiter{Store: store, Now: c.now}, r).At
			c.add(3 * time.Second)
			renewed := mustDo(t, &Limiter{Store: store, Now: c.now}, Renew, r).At
			behind.at(3 * time.Second)
			d := mustDo(t, &Limiter{Store: store, Now: behind.now}, op, r)
			switch {
			case op == Renew && (!d.Allowed || d.At != renewed):
				t.Errorf("the same renewal by another instance: %+v, want the receipt %d", d, renewed)
			case op == Release && d.Used != 0:
				t.Errorf("a release with the old receipt: %+v, want no slot used", d)
			}
		}
	})
}

// Two renewals in one generation put the id into the next one. An instance whose clock
// is 2 s behind still finds it, two generations ahead of its own.
func TestARenewalIsRepeatedOnAClockBehind(t *testing.T) {
	for _, op := range []Op{Renew, Release} {
		store := new(memstore.Store)
		ahead, behind := newClock(), newClock()
		la, lb := &Limiter{Store: store, Now: ahead.now}, &Limiter{Store: store, Now: behind.now}
		set := func(d time.Duration) { ahead.at(d + 2*time.Second); behind.at(d) }
		r := request(policy.Must("log 3/6s"), "r", 1)
		set(2900 * time.Millisecond)
		r.At = mustCheck(t, la, r).At
		set(4900 * time.Millisecond)
		r.At = mustDo(t, la, Renew, r).At
		set(6800 * time.Millisecond)
		mustDo(t, la, Renew, r) // the answer is lost
		set(6850 * time.Millisecond)
		switch d := mustDo(t, lb, op, r); {
		case op == Renew && !d.Allowed:
			t.Errorf("the renewal again: %+v", d)
		case op == Release && d.Used != 0:
			t.Errorf("a release with the older receipt: %+v", d)
		}
	}
}

// The limit was lowered from 10 to 3. A clock ahead sees a slot as free and lowers top
// below it. A clock behind can't renew that slot any more, because nobody would count it.
func TestARenewalAboveTop(t *testing.T) {
	wide, narrow := policy.Must("log 10/10m"), policy.Must("log 3/10m")
	for try := range 20 { // slots are chosen by the ids
		store := new(memstore.Store)
		ahead, behind := newClock(), newClock()
		la, lb := &Limiter{Store: store, Now: ahead.now}, &Limiter{Store: store, Now: behind.now}
		id := func(name string, i int) string { return strconv.Itoa(try) + name + strconv.Itoa(i) }
		var last Request
		for i := range 10 {
			behind.at(time.Duration(i) * time.Second)
			last = request(wide, id("a", i), 1)
			last.At = mustCheck(t, lb, last).At
		}
		holders := 0
		take := func(name string) {
			for i := range 5 {
				if mustCheck(t, la, request(narrow, id(name, i), 1)).Allowed {
					holders++
				}
			}
		}
		behind.at(10*time.Minute + 8*time.Second) // the last of the ten has a second to go
		ahead.at(10*time.Minute + 10*time.Second) // all have expired
		take("b")
		last.Policy = narrow
		if mustDo(t, lb, Renew, last).Allowed {
			holders++
		}
		ahead.add(time.Second)
		if take("c"); holders > 3 {
			t.Fatalf("try %d: %d hold", try, holders)
		}
	}
}

// Hold changes nothing for a log alone, so a deploy that turns it on ends no slot.
func TestADeployTurnsHoldOn(t *testing.T) {
	c := newClock()
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	r := request(policy.Must("log 3/10m"), "a", 1)
	r.At = mustCheck(t, l, r).At
	c.add(3 * time.Minute)
	r.Hold = true
	d := mustDo(t, l, Renew, r)
	if r.At = d.At; !d.Allowed {
		t.Errorf("a renewal: %+v", d)
	}
	if d := mustDo(t, l, Release, r); d.Used != 0 {
		t.Errorf("a release: %+v", d)
	}
}

// A slot that has expired can't be renewed, not even right after its end, and neither
// with its id nor with a receipt alone.
func TestAnExpiredSlotIsNotRenewed(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, window := range []time.Duration{time.Second, 30 * time.Second} {
			c := newClock()
			l := &Limiter{Store: store, Now: c.now}
			r := request(policy.Must("log 2/"+window.String()), "r", 1)
			r.UserID = window.String()
			r.At = mustCheck(t, l, r).At
			c.at(window - time.Millisecond)
			if d := mustDo(t, l, Renew, r); !d.Allowed {
				t.Errorf("%v: a millisecond before its end: %+v", window, d)
			}
			c.add(window)
			for range 2 {
				if d := mustDo(t, l, Renew, r); d.Allowed || d.Reason != Expired {
					t.Errorf("%v: at its end: %+v", window, d)
				}
			}
		}
	})
}

// Two slots of one millisecond are alike. Whoever has freed one of them can't renew the
// other one, which still belongs to its own holder.
func TestARenewalAfterAReleaseLeavesTheNeighbourAlone(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		l := &Limiter{Store: store, Now: c.now}
		mine, theirs := request(policy.Must("log 2/10m"), "mine", 1), request(policy.Must("log 2/10m"), "theirs", 1)
		mine.At, theirs.At = mustCheck(t, l, mine).At, mustCheck(t, l, theirs).At
		c.add(time.Second)
		mustDo(t, l, Release, mine)
		c.add(time.Second)
		if d := mustDo(t, l, Renew, mine); d.Allowed || d.Reason != Expired {
			t.Errorf("a freed slot is renewed: %+v", d)
		}
		c.add(time.Second)
		if d := mustDo(t, l, Renew, theirs); !d.Allowed || d.Used != 1 {
			t.Errorf("the neighbour: %+v, want its slot renewed", d)
		}
	})
}

// Answers are lost at random. Never more hold a slot than the limit, a holder is never
// told that it has expired, and a release gives back.
func TestSlotsUnderLostAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
		c := newClock()
		p := policy.Must("log 3/10m")
		holds, until := map[string]int64{}, map[string]time.Time{} // receipts and ends
		for i := range 40 {
			c.add(time.Duration(rapid.SampledFrom([]int{0, 1, 3, 8, 20, 27, 30, 150, 280}).Draw(t, "pause")) * time.Second)
			calm := rapid.Bool().Draw(t, "calm")
			faults := []fault{pass}
			for range 4 {
				if !calm {
					faults = append(faults, rapid.SampledFrom([]fault{pass, pass, lose, refuse, throttle}).Draw(t, "fault"))
				}
			}
			f.set(append(faults[1:], pass)...)
			for id, end := range until {
				if !c.now().Before(end) {
					delete(holds, id)
					delete(until, id)
				}
			}
			id, op := strconv.Itoa(i), rapid.SampledFrom([]Op{Check, Renew, Release}).Draw(t, "op")
			if op != Check {
				for other := range holds {
					id = min(id, other)
				}
				if holds[id] == 0 {
					continue
				}
			}
			r := request(p, id, 1)
			r.Fresh, r.Alone, r.At = true, false, holds[id]
			d, err := (&Limiter{Store: f, Now: c.now, NewBudget: func() Budget { return new(four) }}).Decide(context.Background(), op, r)
			switch {
			case err != nil && calm:
				t.Fatal(err)
			case op == Check && err == nil && d.Allowed && d.At != 0, op == Renew && err == nil && d.Allowed:
				holds[id], until[id] = d.At, time.UnixMilli(d.At).Add(10*time.Minute)
			case op == Renew && err == nil:
				t.Fatalf("%s holds %d and is told %+v", id, r.At, d)
			case op == Release && err == nil && d.Used >= 3:
				t.Fatalf("nothing was given back: %+v", d)
			}
			if op == Release || op == Renew && err != nil { // after a lost renewal the holder does not know, and stops
				delete(holds, id)
				delete(until, id)
			}
			if len(holds) > 3 {
				t.Fatalf("%d hold", len(holds))
			}
			r.At = 0
			if d, err := (&Limiter{Store: f.Store, Now: c.now}).Decide(context.Background(), Status, r); err != nil || d.Used < int64(len(holds)) {
				t.Fatalf("%d hold, and %+v, %v", len(holds), d, err)
			}
		}
	})
}

// four is a budget of four attempts.
type four struct{ n int }

func (b *four) Next(context.Context, bool) (time.Duration, bool) { b.n++; return 0, b.n <= 4 }

// Twelve workers want three slots of DynamoDB, each an instance of its own.
func TestWorkersNeverExceedTheSlots(t *testing.T) {
	store := dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	var mu sync.Mutex
	var wg sync.WaitGroup
	working, most, done := 0, 0, 0
	for i := range 12 {
		wg.Go(func() {
			l := &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib)}
			for n := 0; ; n++ {
				r := request(policy.Must("log 3/10m"), strconv.Itoa(i)+"-"+strconv.Itoa(n), 1)
				d := mustDo(t, l, Check, r)
				if !d.Allowed {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				mu.Lock()
				working++
				most = max(most, working)
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				r.At = d.At
				if d = mustDo(t, l, Renew, r); !d.Allowed {
					t.Errorf("%+v", d)
				}
				r.At = d.At
				mu.Lock()
				working--
				done++
				mu.Unlock()
				mustDo(t, l, Release, r)
				return
			}
		})
	}
	wg.Wait()
	if d := mustDo(t, &Limiter{Store: store}, Status, request(policy.Must("log 3/10m"), "s", 1)); most > 3 || done != 12 || d.Used != 0 {
		t.Errorf("%d worked at once, %d in all, and at the end %+v", most, done, d)
	}
}

// A renewal leaves other limits alone, so a later release gives back nothing there. The
// minute has 2 actions of others, and neither of them becomes free.
func TestAReleaseAfterARenewalFreesTheSlotOnly(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, hold := range []bool{false, true} {
			c := newClock()
			l := &Limiter{Store: store, Now: c.now}
			next := func(id string) Request {
				r := request(policy.Must("minute: 2/1m, now: log 5/10m"), id, 1)
				r.UserID, r.Hold = strconv.FormatBool(hold), hold
				return r
			}
			r := next("r1")
			r.At = mustCheck(t, l, r).At
			c.add(3 * time.Minute)
			r.At = mustDo(t, l, Renew, r).At
			mustCheck(t, l, next("r2"))
			mustCheck(t, l, next("r3"))
			if d := mustDo(t, l, Release, r); d.Each[0].Used != 2 || d.Each[1].Used != 2 {
				t.Errorf("hold %v: after the release %d of the minute and %d slots are used, want 2 and 2", hold, d.Each[0].Used, d.Each[1].Used)
			}
		}
	})
}

// A clock that is 2 s ahead renews at the end of a generation of ids and in the next one,
// which the clock behind has not begun. That one still finds the slot, with any receipt.
func TestARenewalTwiceOnAClockAhead(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, op := range []Op{Renew, Release} {
			for _, old := range []bool{false, true} {
				ahead, behind := newClock(), newClock()
				ahead.at(-400 * time.Millisecond)
				l := &Limiter{Store: store, Now: ahead.now}
				r := request(policy.Must("log 2/10s"), "r", 1)
				r.UserID = string(op) + strconv.FormatBool(old)
				r.At = mustCheck(t, l, r).At
				first := r.At
				for _, at := range []time.Duration{-300 * time.Millisecond, time.Second} {
					ahead.at(at)
					r.At = mustDo(t, l, Renew, r).At
				}
				if old {
					r.At = first
				}
				behind.at(-time.Second)
				d := mustDo(t, &Limiter{Store: store, Now: behind.now}, op, r)
				if op == Renew && !d.Allowed || op == Release && d.Used != 0 {
					t.Errorf("%s, an older receipt %v: %+v", op, old, d)
				}
			}
		}
	})
}
