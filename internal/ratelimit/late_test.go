package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A partial request can ask for fewer actions in a later attempt. These attempts
// arrive late, after another request released what it had. The decision tells how
// many actions the attempt that landed took.
func TestALatePartialAttemptTellsWhatItTook(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for name, tt := range map[string]struct {
			// Each attempt, in order: "away" never arrives, "late" arrives before the
			// last one, "more" arrives after another action was counted.
			attempts []string
			want     int64
		}{
			"the first attempt, for all three":    {[]string{"late", "pass", "last"}, 3},
			"the third attempt, for two":          {[]string{"away", "pass", "late", "more", "last"}, 2},
			"the last attempt, for the one left":  {[]string{"away", "pass", "away", "more", "pass"}, 1},
			"the last attempt, for the two left":  {[]string{"away", "pass", "away", "pass"}, 2},
			"the first attempt, answered at once": {[]string{"pass", "pass"}, 2},
		} {
			ask := func(id string, n int64) Request {
				r := request(three, id, n)
				r.UserID, r.Policy, r.Fallback = name, fourAMinute, false
				return r
			}
			plain := &Limiter{Store: store, Now: newClock().now}
			two := ask("two", 2)
			two.At = mustCheck(t, plain, two).At
			var late func() error
			f := &faulty{Store: store}
			for _, what := range tt.attempts {
				f.faults = append(f.faults, func(_ context.Context, perform func() error) error {
					switch what {
					case "away":
						return errors.New("timeout")
					case "late":
						late = perform
						return errors.New("timeout")
					case "more":
						mustCheck(t, plain, ask("more", 1))
					case "last":
						mustDo(t, plain, Release, two)
						if err := late(); err != nil {
							t.Error(err)
						}
					}
					return perform()
				})
			}
			l := &Limiter{Store: f, Now: newClock().now, NewBudget: noPauses(len(tt.attempts))}
			some := ask("some", 3)
			some.Partial, some.Fresh = true, true
			d := mustCheck(t, l, some)
			if d.Granted != tt.want || d.Reason != OK || d.At == 0 {
				t.Errorf("%s: %s, granted %d, want %d and a receipt", name, inWords(d), d.Granted, tt.want)
			}
			before := d.Used
			some.At, some.Count = d.At, d.Granted
			if d, err := plain.Decide(t.Context(), Release, some); err != nil || d.Used != before-tt.want {
				t.Errorf("%s: %d used after the release, %v, want %d", name, d.Used, err, before-tt.want)
			}
		}
	})
}

// The first attempt of a decision shows one action. Then another decision shows
// that the limit is reached, and the second attempt is lost. The memory keeps
// the newer answer, although the lost attempt began later.
func TestALostAttemptDoesNotRenewAnOlderAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.Must("minute: 3/1m, day: 200/1d")
		l, store := newFaulty(pass)
		others := &Limiter{Store: store.Store}
		mustCheck(t, others, request(p, "others", 1))
		lost := func(context.Context, func() error) error {
			time.Sleep(50 * time.Millisecond)
			store.set(pass)
			mustCheck(t, others, request(p, "more", 2))
			if d, err := l.Decide(t.Context(), Status, request(p, "newer", 1)); err != nil || d.Used != 3 {
				t.Errorf("Status = %s, %v, want 3 used", inWords(d), err)
			}
			time.Sleep(50 * time.Millisecond)
			store.set(deny)
			return errors.New("connection reset")
		}
		store.set(pass, lost)
		if d := mustCheck(t, l, request(p, "a", 1)); d.Allowed || d.Used != 3 {
			t.Errorf("the decision that lost its attempt: %s, want it refused by the newer answer", inWords(d))
		}
		if d := mustCheck(t, l, request(p, "b", 1)); d.Allowed || d.Used != 3 {
			t.Errorf("in the outage: %s, want it refused", inWords(d))
		}
	})
}

// An answer is as old as the attempt that brought it, however long a later
// attempt takes. So a refusal from memory ends a second after that attempt.
func TestAnAnswerIsAsOldAsItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.Must("minute: 3/1m, day: 200/1d")
		l, store := newFaulty(held(600*time.Millisecond), deny)
		l.Timeout = 5 * time.Second
		mustCheck(t, &Limiter{Store: store.Store}, request(p, "others", 2))
		denied := request(p, "a", 1)
		denied.Fallback = false
		if d, err := l.Check(t.Context(), denied); err == nil || d.Requests != 2 {
			t.Fatalf("Check = %s after %d requests, want an error after the second", inWords(d), d.Requests)
		}
		time.Sleep(500 * time.Millisecond) // 1.1 s after the attempt that was answered
		if d := mustCheck(t, l, request(p, "b", 2)); d.Reason != Unavailable || d.Allowed {
			t.Errorf("Check = %s, want it refused as in an outage", inWords(d))
		}
	})
}

// A decision about an item that can't be read ends after at most two requests, on an instance
// that knows it and on a cold one. It names the attribute. It concerns only that item, so the
// circuit breaker stays closed, and an outage that follows goes on from the last state that
// could be read.
func TestAnUnreadableItem(t *testing.T) {
	for verb, op := range []Op{Check, Status, Release} {
		onEachSubject(t, func(t *testing.T, s subject) {
			p := s.policy()
			if op == Release && p.Queues() {
				t.Skip("a release of a place has nothing to read")
			}
			store, c := &spoiled{Store: new(memstore.Store)}, newClock()
			table := &faulty{Store: store, faults: []fault{pass}}
			l := &Limiter{Store: table, Timeout: time.Second, Memory: NewMemory(mib), Now: c.now}
			full := request(p, "full", min(p.Max(), remaining(p)))
			full.At = mustCheck(t, l, full).At
			for i := range remaining(p) - full.Count {
				mustCheck(t, l, request(p, string(rune('a'+i)), 1))
			}
			was := mustDo(t, l, Status, request(p, "x", 1))
			u, _ := p.Take(start.UnixMilli(), p.Max(), 1, nil)
			store.attrs = slices.Compact(slices.Sorted(u.Attributes)) // all that p uses in an empty item
			c.at(1100 * time.Millisecond)                             // the memory refuses no longer
			r := full
			r.Fallback = false
			if op == Check {
				r.ID = "another"
			}
			absent := r
			absent.UserID = "without an item"
			cold := &Limiter{Store: table, Timeout: time.Second, Memory: NewMemory(mib), Now: c.now}
			for i, ask := range []func() (Decision, error){
				func() (Decision, error) { return l.Decide(t.Context(), op, r) },
				func() (Decision, error) { return cold.Decide(t.Context(), op, r) },
				func() (Decision, error) { return cold.Decide(t.Context(), op, absent) },
			} {
				d, err := ask()
				e, ok := errors.AsType[*StoreError](err)
				if !ok || e.Failure != Unreadable || !slices.Contains(store.attrs, e.Attr) || d.Requests > 2 {
					t.Errorf("verb %d, instance %d: %#v after %d requests, want unreadable with the attribute after at most two", verb, i, err, d.Requests)
				}
			}
			if l.CircuitOpen() || cold.CircuitOpen() {
				t.Errorf("verb %d: the circuit breaker is open, want it closed", verb)
			}
			table.set(deny)
			if d := mustDo(t, l, Status, request(p, "x", 1)); d.Allowed != was.Allowed || d.Used != was.Used {
				t.Errorf("verb %d, then an outage: %s, want as before: %s", verb, inWords(d), inWords(was))
			}
		})
	}
}

// A release whose update cannot hold in the item it was planned for ends at once:
// the item is not what it reads as.
func TestAReleaseThatCannotHoldEnds(t *testing.T) {
	store := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
	l, _ := instance(store)
	r := request(policy.Must("bucket 10/1m"), "a", 1)
	r.At = start.UnixMilli()
	_, done, err := store.Store.Update(t.Context(), Write{
		Key: Key{UserID: "u", Activity: "act"}, ID: NewID("a"), Now: r.At,
		Update: policy.Update{Acts: []policy.Act{ // no interval, which every bucket has
			{Verb: policy.Set, Attr: "tat", Value: r.At + 6000}, {Verb: policy.Set, Attr: "since", Value: r.At},
		}},
	})
	if err != nil || !done {
		t.Fatal(done, err)
	}
	_, err = l.Decide(t.Context(), Release, r)
	if e, ok := errors.AsType[*StoreError](err); !ok || e.Failure != Unreadable {
		t.Errorf("Release: %v, want unreadable", err)
	}
	if store.count() > 2 || l.CircuitOpen() {
		t.Errorf("%d requests, circuit open: %v, want at most 2 and closed", store.count(), l.CircuitOpen())
	}
}

// spoiled is a store that gives some attributes of every item the wrong type. No
// condition holds on them.
type spoiled struct {
	Store
	attrs []string
}

func (s *spoiled) Update(ctx context.Context, w Write) (Item, bool, error) {
	for attr := range w.Update.Attributes {
		if slices.Contains(s.attrs, attr) {
			item, err := s.Store.Read(ctx, w.Key)
			return s.spoil(item), false, err
		}
	}
	item, done, err := s.Store.Update(ctx, w)
	return s.spoil(item), done, err
}

func (s *spoiled) Read(ctx context.Context, k Key) (Item, error) {
	item, err := s.Store.Read(ctx, k)
	return s.spoil(item), err
}

func (s *spoiled) spoil(item Item) Item {
	item.Unread = s.attrs
	var without policy.Update
	for _, attr := range s.attrs {
		without.Acts = append(without.Acts, policy.Act{Verb: policy.Delete, Attr: attr})
	}
	item.State = without.Apply(item.State)
	return item
}
