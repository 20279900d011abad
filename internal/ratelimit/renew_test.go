package ratelimit_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// mustDo decides op and fails the test if there is an error.
func mustDo(t *testing.T, l *Limiter, op Op, r Request) Decision {
	t.Helper()
	d, err := l.Decide(t.Context(), op, r)
	testkit.OK(t, err)
	return d
}

// A slot is renewed again and again, freed, and then it is gone. A renewal that is sent
// again changes nothing, and an older receipt works until the item has forgotten the id.
func TestASlotIsRenewed(t *testing.T) {
	const first = time.Second
	for _, text := range []string{"log 2/10m", "now: log 2/10m, day: 9/1d", "log 4/10m cost 2"} {
		timeline(t, text, []moment{
			{at: first, id: "r1", want: "ok 1/2"},
			{at: first, id: "r2", want: "ok 2/2"},
			{at: 5 * time.Minute, ask: Renew, id: "r1", want: "ok 2/2"},
			{at: 5 * time.Minute, ask: Renew, id: "r1", want: "ok 2/2"},
			{at: 10 * time.Minute, ask: Renew, id: "r1", want: "ok 2/2"},
			{at: 10 * time.Minute, id: "r1", want: "duplicate 2/2", granted: 1}, // the check is known under its id
			{at: 15 * time.Minute, ask: Renew, id: "r1", want: "ok 1/2"},        // r2 has expired
			{at: 20 * time.Minute, ask: Renew, id: "r1", want: "ok 1/2"},
			{at: 20 * time.Minute, ask: Renew, id: "r1", receipt: first, want: "ok 1/2"},
			{at: 21 * time.Minute, ask: Renew, id: "r1", receipt: first, want: "expired 1/2"},
			{at: 21 * time.Minute, ask: Release, id: "r1", want: "ok 0/2"},
			{at: 21 * time.Minute, ask: Release, id: "r1", want: "ok 0/2"},
			{at: 21 * time.Minute, ask: Renew, id: "r1", want: "expired 0/2"},
		})
	}
}

// Each of these stories ends with a renewal or a release that finds its slot, although the
// receipt is an older one or the clock is 2 s behind.
func TestALostRenewalCostsNothing(t *testing.T) {
	for op, want := range map[Op]string{Renew: "ok 1/2", Release: "ok 0/2"} {
		timeline(t, "log 2/10s", []moment{ // the answer to the renewal was lost
			{by: "ahead", id: "r", want: "ok 1/2"},
			{at: 3 * sec, by: "ahead", ask: Renew, id: "r", want: "ok 1/2"},
			{at: 3 * sec, by: "cold", ask: op, id: "r", receipt: 2 * sec, want: want},
		})
		// The second renewal in one generation puts the id into the next one. It is two
		// generations ahead of the clock behind.
		timeline(t, "log 2/6s", []moment{
			{at: 2900 * time.Millisecond, by: "ahead", id: "r", want: "ok 1/2"},
			{at: 4900 * time.Millisecond, by: "ahead", ask: Renew, id: "r", want: "ok 1/2"},
			{at: 6800 * time.Millisecond, by: "ahead", ask: Renew, id: "r", want: "ok 1/2"},
			{at: 6850 * time.Millisecond, by: "cold", ask: op, id: "r", receipt: 6900 * time.Millisecond, want: want},
		})
		// The clock ahead renews at the end of a generation and in the next one, which the
		// clock behind has not begun.
		for _, receipt := range []time.Duration{-400 * time.Millisecond, time.Second} {
			timeline(t, "log 2/10s", []moment{
				{at: -2400 * time.Millisecond, by: "ahead", id: "r", want: "ok 1/2"},
				{at: -2300 * time.Millisecond, by: "ahead", ask: Renew, id: "r", want: "ok 1/2"},
				{at: -sec, by: "ahead", ask: Renew, id: "r", want: "ok 1/2"},
				{at: -sec, by: "cold", ask: op, id: "r", receipt: receipt, want: want},
			})
		}
	}
}

// The limit was lowered from 10 to 3. A clock ahead sees a slot as free and lowers top
// below it. A clock behind can't renew that slot any more, because nobody would count it.
func TestARenewalAboveTop(t *testing.T) {
	wide, narrow := policy.Must("log 10/10m"), policy.Must("log 3/10m")
	for try := range 20 { // slots are chosen by the ids
		twoClocks(t, new(memstore.Store), 2*time.Second, func(at func(time.Duration), behind, early *Limiter) {
			id := func(name string, i int) string { return strconv.Itoa(try) + name + strconv.Itoa(i) }
			var last Request
			for i := range 10 {
				at(time.Duration(i) * time.Second)
				last = request(wide, id("a", i), 1)
				last.At = mustCheck(t, behind, last).At
			}
			holders := 0
			take := func(name string) {
				for i := range 5 {
					if mustCheck(t, early, request(narrow, id(name, i), 1)).Allowed {
						holders++
					}
				}
			}
			at(10*time.Minute + 8*time.Second) // the last of the ten has a second to go, and all have expired for the clock ahead
			take("b")
			last.Policy = narrow
			if mustDo(t, behind, Renew, last).Allowed {
				holders++
			}
			at(10*time.Minute + 9*time.Second)
			if take("c"); holders > 3 {
				t.Fatalf("try %d: %d hold", try, holders)
			}
		})
	}
}

// A slot that has expired can't be renewed, not even right after its end, and neither
// with its id nor with a receipt alone.
func TestAnExpiredSlotIsNotRenewed(t *testing.T) {
	for _, window := range []time.Duration{time.Second, 30 * time.Second} {
		timeline(t, "log 2/"+window.String(), []moment{
			{id: "r", want: "ok 1/2"},
			{at: window - time.Millisecond, ask: Renew, id: "r", want: "ok 1/2"},
			{at: 2*window - time.Millisecond, ask: Renew, id: "r", want: "expired 0/2"},
			{at: 2*window - time.Millisecond, ask: Renew, id: "r", want: "expired 0/2"},
		})
	}
}

// A renewal leaves other limits alone, so a later release gives back nothing there. The
// minute has 2 actions of others, and neither of them becomes free.
func TestAReleaseAfterARenewalFreesTheSlotOnly(t *testing.T) {
	for _, hold := range []bool{false, true} {
		timeline(t, "minute: 2/1m, now: log 5/10m", []moment{
			{by: "cold", id: "r1", hold: hold, want: "ok 1/2"},
			{at: 3 * time.Minute, by: "cold", ask: Renew, id: "r1", hold: hold, want: "ok 0/2"},
			{at: 3 * time.Minute, by: "cold", id: "r2", hold: hold, want: "ok 1/2"},
			{at: 3 * time.Minute, by: "cold", id: "r3", hold: hold, want: "ok 2/2", used: []int64{2, 3}},
			{at: 3 * time.Minute, by: "cold", ask: Release, id: "r1", hold: hold, want: "ok 2/2", used: []int64{2, 2}},
		})
	}
}

// Another instance renews a slot twice, which leaves its id in its first set. An instance
// that has seen only the check does not take another slot of the same millisecond for it.
func TestARenewalLeavesASlotOfTheSameMillisecond(t *testing.T) {
	const checked = time.Second
	for i := range 10 { // which slot is first depends on the ids
		mine := strconv.Itoa(i)
		timeline(t, "log 5/10s", []moment{
			{at: checked, id: mine, want: "ok 1/5"},
			{at: checked, by: "cold", id: "theirs", want: "ok 2/5"},
			{at: 2 * sec, by: "cold", ask: Renew, id: mine, want: "ok 2/5"},
			{at: 3 * sec, by: "cold", ask: Renew, id: mine, want: "ok 2/5"},
			{at: 3 * sec, ask: Renew, id: mine, receipt: checked, want: "ok 2/5"}, // again
			{at: 3 * sec, ask: Renew, id: "theirs", want: "ok 2/5"},
			{at: 12 * sec, ask: Status, id: "s", want: "ok 2/5"}, // both were renewed at 3 s
		})
	}
}

// A receipt that is held works for 15 minutes, once, while others come with and without a
// hold. A cold instance settles it. If the limit has a max, everybody has another number.
func TestAHeldReceipt(t *testing.T) {
	for _, text := range []string{
		"1000/1d", "100000/1h cost 10", "bucket 1000/1d", "sliding 1000/1d", "tokens: 9000/1h, jobs: log 9/1h", "99/1h",
		"20/1d max 1000", "20/1d max 90", "bucket 20/1d max 1000", "sliding 20/1d max 1000", "tokens: 900/1h max 9000, jobs: log 9/1h max 90",
	} {
		onEachStore(t, func(t *testing.T, store Store) {
			l, c := instance(store)
			held := func(number int64, id string, n int64) Request {
				r := request(numbered(text, number), id, n)
				r.Hold = true
				return r
			}
			r := held(60, "r1", 9)
			r.At = mustCheck(t, l, r).At
			c.add(8 * time.Minute)
			if d := mustCheck(t, l, held(9, "r1", 9)); d.Reason != Duplicate {
				t.Fatalf("%s: a repeat, with a low number: %+v", text, d)
			}
			for i := range 25 {
				c.add(14 * time.Second)
				if d := mustCheck(t, l, held([]int64{70, 5, 90}[i%3], "o"+strconv.Itoa(i), 1)); d.Requests > 2 {
					t.Fatalf("%s: %+v", text, d)
				}
			}
			r.Policy, r.Count = numbered(text, 2), 6
			cold := &Limiter{Store: store, Now: c.now}
			c.at(14 * time.Minute)
			state, before := stateOf(t, store, r), eachUsed(mustDo(t, cold, Status, held(90, "s", 1)))
			for i := range 5 {
				for limit, n := range eachUsed(mustDo(t, cold, Release, r)) {
					if i == 0 && n != before[limit]-6 {
						t.Fatalf("%s: %d used of limit %d, and after a release of 6 %d", text, before[limit], limit, n)
					}
				}
				after := stateOf(t, store, r)
				if changed := after != state; changed != (i == 0) {
					t.Fatalf("%s: release %d changes the item: %v", text, i, changed)
				}
				state = after
				c.add(5 * time.Second)
			}
			r.Policy, r.Count = numbered(text, 90), 1
			if d := mustCheck(t, l, r); d.Reason != OK {
				t.Fatalf("%s: a check with an id that is given back: %+v", text, d)
			}
			r.At = c.now().UnixMilli()
			state = stateOf(t, store, r)
			c.add(21 * time.Minute)
			mustDo(t, l, Release, r)
			whole := text == "99/1h" || text == "20/1d max 90" || strings.Contains(text, "log") // these know their receipts for longer
			if after := stateOf(t, store, r); after != state && !whole {
				t.Errorf("%s: a release after 21 minutes changes %s to %s", text, state, after)
			}
		})
	}
}

// eachUsed returns the used figure of each limit.
func eachUsed(d Decision) (all []int64) {
	for _, r := range d.Limits() {
		all = append(all, r.Used)
	}
	return all
}

// What renewals and releases find, whichever instance sends them.
func TestRenewalTimelines(t *testing.T) {
	stories(t, []story{
		// Hold changes nothing for a log alone, so a deploy that turns it on ends no slot.
		{"a deploy turns hold on", "log 3/10m", []moment{
			{id: "a", want: "ok 1/3"},
			{at: 3 * time.Minute, ask: Renew, id: "a", hold: true, want: "ok 1/3"},
			{at: 3 * time.Minute, ask: Release, id: "a", hold: true, want: "ok 0/3"},
		}},
		// Two slots of one millisecond are alike. A holder that has freed its slot can't renew
		// the other one, which still belongs to its own holder.
		{"a renewal after a release leaves the neighbour alone", "log 2/10m", []moment{
			{id: "mine", want: "ok 1/2"},
			{id: "theirs", want: "ok 2/2"},
			{at: sec, by: "cold", ask: Release, id: "mine", want: "ok 1/2"},
			{at: 2 * sec, by: "cold", ask: Renew, id: "mine", want: "expired 1/2"},
			{at: 3 * sec, by: "cold", ask: Renew, id: "theirs", want: "ok 1/2"},
		}},
		// Another instance renews a slot twice in one generation of ids, which leaves the id in
		// its first set. An instance that has seen only the check still frees the slot, and the
		// action in the other limit, which it knows by the time of the check.
		{"a release after two renewals elsewhere", "now: log 6/10s, all: sliding 10/20s", []moment{
			{id: "r1", want: "ok 1/6"},
			{at: sec, by: "cold", ask: Renew, id: "r1", want: "ok 1/6"},
			{at: 2 * sec, by: "cold", ask: Renew, id: "r1", want: "ok 1/6"},
			{at: 2 * sec, ask: Release, id: "r1", want: "ok 0/6", used: []int64{0, 0}},
		}},
		// A renewal leaves its id in the next generation, and a release on a clock ahead drops
		// it there and keeps its own in the one after that. A copy of the release on a clock
		// behind finds it, even if the same check was counted again.
		{"a copy of a release after a renewal on a clock ahead", "a: sliding 9/20s, b: log 9/20s", []moment{
			{at: 5 * sec, by: "cold", id: "r1", want: "ok 1/9"},
			{at: 6 * sec, by: "cold", ask: Renew, id: "r1", want: "ok 1/9"},
			{at: 6 * sec, by: "ahead", ask: Release, id: "r1", want: "ok 0/9"},
			{at: 6 * sec, by: "cold", id: "r1", want: "ok 1/9"},
			{at: 6 * sec, by: "cold", ask: Release, id: "r1", receipt: 6 * sec, want: "ok 1/9", used: []int64{1, 1}},
		}},
		// The release comes in the next generation. A late copy finds its id, even in the set
		// where the copy would drop the id of a later check.
		{"a late copy of a release in the same set", "1000/1m", []moment{
			{at: 6 * sec, by: "cold", id: "r1", want: "ok 1/1000"},
			{at: 8 * sec, by: "cold", ask: Release, id: "r1", want: "ok 0/1000"},
			{at: 8 * sec, by: "cold", id: "r1", want: "ok 1/1000"},
			{at: 8 * sec, by: "cold", ask: Release, id: "r1", receipt: 6 * sec, want: "ok 1/1000"},
		}},
		// The same with a renewal in between: the release drops the check's id from the next set, and
		// keeps its own in the set that a later check uses. A generation lasts from second 7 to 14.
		{"a late copy of a release after a renewal in the same set", "now: log 9/10m, day: 90/1d", []moment{
			{at: 8 * sec, by: "cold", id: "r1", want: "ok 1/9"},
			{at: 9 * sec, by: "cold", ask: Renew, id: "r1", want: "ok 1/9"},
			{at: 10 * sec, by: "cold", ask: Release, id: "r1", receipt: 8 * sec, want: "ok 0/9"},
			{at: 11 * sec, by: "cold", id: "r1", want: "ok 1/9"},
			{at: 12 * sec, by: "cold", ask: Release, id: "r1", receipt: 8 * sec, want: "ok 1/9", used: []int64{1, 1}},
		}},
		// A write removes no set of ids that can still be looked for: of a check at the end of a
		// generation, a repeat comes in the third one after it.
		{"others write before a late repeat", "1000/1m", []moment{
			{at: 6900 * time.Millisecond, by: "cold", id: "r1", want: "ok 1/1000"},
			{at: 22 * sec, by: "cold", id: "r2", want: "ok 2/1000"},
			{at: 24 * sec, by: "cold", id: "r1", want: "duplicate 2/1000", granted: 1},
		}},
	})
}
