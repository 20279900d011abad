package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// borders are policies of each kind that can count on a clock behind as another clock has
// begun to, with a border at second 60.
var borders = []string{
	"10/1m", "101/1m", "1000/day in Europe/Berlin", "log 9/1m", "sliding 50/1m", "bucket 30/1m", "bucket 10/10m burst 20",
	"minute: 10/1m", "minute: 10/1m, day: 90/1d", "all: sliding 50/1m, day: 90/1d", "now: log 9/1m, pace: bucket 30/1m", "minute: 10/1m, pace: bucket 10/1m",
	"pace: bucket 10/1m, day: sliding 50/1d", "minute: 10/1m, now: log 9/1m, all: sliding 50/1m",
}

// The clocks of two instances differ by up to 2 s. Whatever the one has begun, each admitted
// check of the other has a receipt, which is its own time. It gives back what was counted,
// and nothing in a window that did not count it: what others have counted stays.
func TestEachAdmittedCheckHasAReceipt(t *testing.T) {
	for _, text := range borders {
		for _, room := range []string{"", "minute: 30/1m", "bucket 30/1m", "sliding 50/1m"} {
			for _, apart := range []time.Duration{time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
				for _, at := range []time.Duration{58 * time.Second, 59*time.Second + 999*time.Millisecond, time.Minute} {
					for n, released := range []time.Duration{0, 0, time.Second, 3 * time.Second} {
						name := fmt.Sprintf("%s, room %q, apart %v, at %v, released after %v, %d", text, room, apart, at, released, n)
						twoClocks(t, new(memstore.Store), apart, func(set func(time.Duration), behind, early *Limiter) {
							releaser := behind
							if n == 1 {
								releaser = early
							}
							receiptAtABorder(t, name, text, room, set, behind, early, releaser, at, released)
						})
					}
				}
			}
		}
	}
}

func receiptAtABorder(t *testing.T, name, text, room string, set func(time.Duration), behind, early, releaser *Limiter, at, released time.Duration) {
	t.Helper()
	parts := func(id string) []Part {
		if room == "" {
			return message("u", "r", id, text, text)[:1]
		}
		return message("u", "r", id, text, room)
	}
	set(at)
	first := mustDoAll(t, early, Check, parts("first"), 0, name)
	d := mustDoAll(t, behind, Check, parts("second"), 0, name)
	if now := behind.Now().UnixMilli(); d.At != now || first.At != early.Now().UnixMilli() {
		t.Fatalf("%s: the receipts are %d and %d, want the times of the checks, %d and %d", name, first.At, d.At, early.Now().UnixMilli(), now)
	}
	set(at + released)
	mustDoAll(t, early, Check, parts("third"), 0, name)
	least := int64(0)
	if minute := time.UnixMilli(d.At).Truncate(time.Minute); released == 0 && releaser.Now().Before(minute.Add(time.Minute)) { // nothing has ended
		least = 1
	}
	before := usedOfEach(t, behind, parts("status"))
	mustDoAll(t, releaser, Release, parts("second"), d.At, name)
	after := usedOfEach(t, behind, parts("status"))
	for limit, n := range after {
		if gone := before[limit] - n; gone < least || gone > 1 {
			t.Fatalf("%s: the limit %s counts %d, and after a release of one %d", name, limit, before[limit], n)
		}
	}
	mustDoAll(t, releaser, Release, parts("second"), d.At, name)
	if again := usedOfEach(t, behind, parts("status")); fmt.Sprint(again) != fmt.Sprint(after) {
		t.Fatalf("%s: %v are used, and after a copy of the release %v", name, after, again)
	}
}

// usedOfEach returns what each limit of each part counts.
func usedOfEach(t *testing.T, l *Limiter, parts []Part) map[string]int64 {
	t.Helper()
	used := map[string]int64{}
	for _, r := range doAll(t, l, Status, parts, 0).Each {
		used[r.Name] = r.Used
	}
	return used
}

// With a renewal, a release has any receipt of the check or of its renewals. For 20 s after
// the check it frees every limit of every part, and a copy frees what the first one did not
// reach. After that, it frees the slots.
func TestAReleaseAfterARenewal(t *testing.T) {
	const checked, renewed = time.Second, 9 * time.Second
	for _, room := range []string{"1000/1d", "bucket 1000/1d", "sliding 1000/1d", "log 9/10m", "a: 90/1d, b: bucket 90/1d", "10/1d"} {
		for _, receipt := range []time.Duration{checked, renewed} {
			for _, after := range []time.Duration{10 * time.Second, 20 * time.Second, 25 * time.Second} {
				for reached := range 3 { // how many updates of the release the first attempt performs
					name := fmt.Sprintf("%s, receipt of %v, after %v, reached %d", room, receipt, after, reached)
					c, store := newClock(), new(memstore.Store)
					l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
					parts := message("u", "r", "a", "now: log 3/10m, day: 90/1d", room)
					c.at(checked)
					at := map[time.Duration]int64{checked: mustDoAll(t, l, Check, parts, 0, name).At}
					c.at(renewed)
					at[renewed] = mustDoAll(t, l, Renew, parts, at[checked], name).At
					c.at(after)
					for i := range parts {
						parts[i].At = at[receipt]
					}
					_, _ = (&Limiter{Store: mortal(store, reached), Now: c.now}).DecideAll(t.Context(), Release, parts, false)
					mustDoAll(t, l, Release, parts, at[receipt], name)
					inTime := after <= checked+20*time.Second
					for limit, n := range usedOfEach(t, l, message("u", "r", "status", "now: log 3/10m, day: 90/1d", room)) {
						slots := limit == "now" || room == "log 9/10m" && limit == "room"
						whole := room == "10/1d" && limit == "room" && receipt == checked // its ids last as long as the window
						switch free := inTime || slots || whole; {
						case free && n != 0, !free && n != 1 && room != "10/1d":
							t.Errorf("%s: the limit %s counts %d", name, limit, n)
						}
					}
				}
			}
		}
	}
}

// Several parts have slots. If one is gone, the others don't move. If one goes between
// the read and the update, those that were moved are freed.
func TestARenewalOfSeveralPartsIsAllOrNothing(t *testing.T) {
	for _, between := range []bool{false, true} {
		c, store := newClock(), new(memstore.Store)
		l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
		parts := message("u", "r", "a", "log 3/10m", "log 9/10m")
		d := mustDoAll(t, l, Check, parts, 0, "a check")
		c.add(3 * time.Minute)
		leave := func() { mustDo(t, l, Reset, parts[1].Request) }
		renewer := &Limiter{Store: beforeEach(store, once(func(w Write) bool { return between && ofUser(w) }, leave)), Now: c.now}
		if !between {
			leave()
		}
		was := stateOf(t, store, parts[0].Request)
		if d := doAll(t, renewer, Renew, parts, d.At); d.Allowed || d.Reason != Expired {
			t.Errorf("%+v, want expired", d)
		}
		if is := stateOf(t, store, parts[0].Request); !between && is != was {
			t.Errorf("the user's slot has moved from %s to %s", was, is)
		}
		if used := usedIn(t, store, parts[0], c); (used == 0) != between {
			t.Errorf("in between %v: the user has %d slots", between, used)
		}
	}
}

// The slot of a later part is over before the renewal begins, and an earlier part was renewed
// by an attempt that died. The look sees that the slot is gone at the present time.
func TestARenewalLooksAtThePresent(t *testing.T) {
	c, store := newClock(), new(memstore.Store)
	l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
	parts := message("u", "r", "a", "log 3/10m", "log 9/10s")
	d := mustDoAll(t, l, Check, parts, 0, "a check")
	c.add(5 * time.Second)
	for i := range parts {
		parts[i].At = d.At
	}
	_, _ = (&Limiter{Store: mortal(store, 1), Now: c.now}).DecideAll(t.Context(), Renew, parts, false)
	was := stateOf(t, store, parts[0].Request)
	c.add(6 * time.Second)
	if d := doAll(t, l, Renew, parts, d.At); d.Allowed || stateOf(t, store, parts[0].Request) != was {
		t.Errorf("%+v, want expired, and the user's slot where it was", d)
	}
}

// The receipt of an earlier check with the same id gives back nothing, if it is of another
// 7 s. With Hold it is one of another 5 minutes.
func TestAReceiptOfAnotherTime(t *testing.T) {
	for _, text := range []string{"1000/1d", "bucket 1000/1d", "sliding 1000/1d", "a: 90/1h, b: 900/1d", "log 90/1h"} {
		timeline(t, text, []moment{
			{at: sec, by: "cold", id: "r", want: "ok 1/" + limitOf(text)},
			{at: 2 * sec, by: "cold", ask: Release, id: "r", want: "ok 0/" + limitOf(text)},
			{at: 25 * sec, by: "cold", id: "r", want: "ok 1/" + limitOf(text)},
			{at: 31 * sec, by: "cold", ask: Release, id: "r", receipt: sec, want: "ok 1/" + limitOf(text)}, // a late copy
			{at: 31 * sec, by: "cold", ask: Release, id: "r", receipt: 25 * sec, want: "ok 0/" + limitOf(text)},
		})
		if text == "log 90/1h" {
			continue
		}
		timeline(t, text, []moment{
			{at: sec, by: "cold", id: "r", hold: true, want: "ok 1/" + limitOf(text)},
			{at: time.Minute, by: "cold", ask: Release, id: "r", hold: true, want: "ok 0/" + limitOf(text)},
			{at: 70 * sec, by: "cold", id: "r", hold: true, want: "ok 1/" + limitOf(text)},
			{at: 130 * sec, by: "cold", ask: Release, id: "r", hold: true, receipt: sec, want: "ok 1/" + limitOf(text)}, // more than 28 s later
			{at: 130 * sec, by: "cold", ask: Release, id: "r", hold: true, receipt: 70 * sec, want: "ok 0/" + limitOf(text)},
			{at: 6 * time.Minute, by: "cold", id: "r", hold: true, want: "ok 1/" + limitOf(text)},
			{at: 7 * time.Minute, by: "cold", ask: Release, id: "r", hold: true, receipt: sec, want: "ok 1/" + limitOf(text)},
		})
	}
}

// limitOf returns the first number of a text.
func limitOf(text string) string { return strconv.FormatInt(policy.Must(text).Rates()[0].Limit, 10) }

// With Hold, ten sign-ins a second, each given back, for 20 minutes: the ids of releases last
// 20 s, so that the item stays small.
func TestAHeldItemStaysSmall(t *testing.T) {
	c, store := newClock(), new(memstore.Store)
	l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
	r := request(policy.Must("bucket 500/1m"), "", 1)
	r.Hold = true
	for i := range repeats(20 * 60 * 10) {
		c.add(100 * time.Millisecond)
		r.ID, r.At = strconv.Itoa(i), 0
		r.At = mustCheck(t, l, r).At
		mustDo(t, l, Release, r)
		if i%50 != 0 {
			continue
		}
		item, err := store.Read(t.Context(), Key{UserID: r.UserID, Activity: r.Activity})
		testkit.OK(t, err)
		bytes := 0
		for _, set := range item.IDs {
			marks := set.Elements
			for bytes += len(set.Name); len(marks) > 0; marks = marks[1:] {
				if bytes += 6; marks[0].Note != 0 {
					bytes += 8
				}
			}
		}
		if bytes > 4<<10 {
			t.Fatalf("after %d sign-ins, the ids take %d bytes, want at most 4 KB", i, bytes)
		}
	}
}

// After a renewal, each time from the check to the last renewal is a receipt, and no other is.
func TestTheReceiptsOfARenewedCheck(t *testing.T) {
	const checked, renewed = 2 * time.Second, 4 * time.Second
	for receipt, want := range map[time.Duration]string{
		checked - time.Millisecond: "ok 1/9", checked: "ok 0/9", checked + time.Second: "ok 0/9",
		renewed: "ok 0/9", renewed + time.Millisecond: "ok 1/9",
	} {
		timeline(t, "log 9/10m", []moment{
			{at: checked, by: "cold", id: "r", want: "ok 1/9"},
			{at: renewed, by: "cold", ask: Renew, id: "r", want: "ok 1/9"},
			{at: 5 * sec, by: "cold", ask: Release, id: "r", receipt: receipt, want: want},
		})
	}
}

// A clock ahead has filled the bucket, so that a check on a clock behind counts later than its
// receipt. A renewal keeps both times, and a release after it gives back the bucket.
func TestARenewalKeepsWhenACheckCounts(t *testing.T) {
	timeline(t, "now: log 9/10m, pace: bucket 30/1h", []moment{
		{at: 10 * sec, by: "ahead", id: "first", want: "ok 1/9"},
		{at: 10 * sec, id: "second", want: "ok 2/9"},
		{at: 15 * sec, ask: Renew, id: "second", want: "ok 2/9"},
		{at: 16 * sec, ask: Release, id: "second", want: "ok 1/9", used: []int64{1, 1}},
	})
}

// A renewal fails in its second part and frees the slots that it moved. The action itself goes
// on, so it still counts in the other limits.
func TestARenewalThatFailsLeavesOtherLimitsAlone(t *testing.T) {
	c, store := newClock(), new(memstore.Store)
	l := &Limiter{Store: store, Now: c.now}
	parts := message("u", "r", "a", "now: log 3/10m, day: 90/1d", "log 9/10m")
	d := mustDoAll(t, l, Check, parts, 0, "a check")
	c.add(10 * time.Second)
	l.Store = beforeEach(store, once(ofUser, func() { mustDo(t, l, Reset, parts[1].Request) }))
	if d = doAll(t, l, Renew, parts, d.At); d.Allowed || d.Reason != Expired {
		t.Errorf("%+v, want expired", d)
	}
	l.Store = store
	if used := usedOfEach(t, l, message("u", "r", "status", "now: log 3/10m, day: 90/1d", "log 9/10m")); used["now"] != 0 || used["day"] != 1 {
		t.Errorf("%v are used, want no slot, and 1 of the day", used)
	}
}

// A renewal of slots in two items reads each of them once, and moves each by one write.
func TestARenewalReadsEachItemOnce(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store)}
	parts := message("u", "r", "a", "log 3/10m", "log 9/10m")
	at := mustDoAll(t, l, Check, parts, 0, "a check").At
	if d := mustDoAll(t, l, Renew, parts, at, "a renewal"); d.Requests != 4 {
		t.Errorf("%d requests, want 4", d.Requests)
	}
}

// If the slots that it moved can't be freed, that opens the circuit of their item, and not the
// table's, which has answered the renewal.
func TestARenewalThatCannotFreeItsSlots(t *testing.T) {
	l, works, users := failingFor("u", pass)
	parts := message("u", "r", "a", "log 3/10m", "log 9/10m")
	at := mustDoAll(t, l, Check, parts, 0, "a check").At
	users.set(pass, func(ctx context.Context, move func() error) error {
		return errors.Join(move(), works.Delete(ctx, Key{UserID: " room r", Activity: "write"}))
	}, refuse)
	if d := doAll(t, l, Renew, parts, at); d.Reason != Expired || l.CircuitOpen() {
		t.Errorf("%+v, circuit open: %v, want expired, and closed", d, l.CircuitOpen())
	}
}

// A release gives back what its check took, whatever number comes with it.
func TestAReleaseWithAnotherNumber(t *testing.T) {
	for _, text := range append(scalable, "bucket 20/1h burst 30 max 90", "40/1h max 180 cost 2", "bucket 40/1h burst 44 max 180 cost 2") {
		for _, n := range []int64{0, 1, 7, 59, 60, 90, 1000} {
			onEachStore(t, func(t *testing.T, store Store) {
				l, _ := instance(store)
				used := func() []int64 { return eachUsed(mustDo(t, l, Status, request(numbered(text, 60), "s", 1))) }
				mustCheck(t, l, request(numbered(text, 60), "other", 3))
				before := used()
				r := request(numbered(text, 60), "a", 5)
				r.At = mustCheck(t, l, r).At
				r.Policy = numbered(text, n)
				for range 2 {
					if d := mustDo(t, l, Release, r); !d.Allowed {
						t.Errorf("%s: a release with the number %d: %s", text, n, inWords(d))
					}
				}
				if after := used(); !slices.Equal(after, before) {
					t.Errorf("%s: %d were used, and after a check and a release with the number %d %d", text, before, n, after)
				}
			})
		}
	}
}

// Slots are renewed with another number than the check's.
func TestARenewalWithAnotherNumber(t *testing.T) {
	for _, n := range []int64{0, 1, 90} {
		onEachStore(t, func(t *testing.T, store Store) {
			l, c := instance(store)
			r := request(numbered("log 20/1h max 90", 60), "a", 50)
			r.At = mustCheck(t, l, r).At
			r.Policy = numbered("log 20/1h max 90", n)
			c.add(50 * time.Minute)
			if d := mustDo(t, l, Renew, r); !d.Allowed || d.At != c.now().UnixMilli() || d.Granted != 50 {
				t.Errorf("with the number %d: %+v", n, d)
			}
			c.add(50 * time.Minute)
			if d := mustDo(t, l, Status, request(numbered("log 20/1h max 90", 60), "s", 1)); d.Used != 50 {
				t.Errorf("with the number %d, %d count, want 50", n, d.Used)
			}
		})
	}
}
