package policy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

// windows are the windows before and after deploys: multiples of each other and
// not, as long as an hour and shorter than the pauses of a user.
var windows = []string{"10s", "15s", "1m", "2m", "7m", "1h"}

// deploys returns every pair of limits of one kind that differ in their windows
// and perhaps in their numbers, alone and beside another limit.
func deploys() (pairs [][2]Policy) {
	for _, k := range Kinds() {
		for _, from := range windows {
			for _, to := range windows {
				for _, limits := range [][2]int{{5, 5}, {5, 2}, {2, 5}} {
					for _, form := range []string{"%s %d/%s%s", "a: %s %d/%s%s, month: 9/30d"} {
						options := ""
						if k.Name == "reservoir" {
							options = " ahead 15m"
						}
						before, err := Parse(fmt.Sprintf(form, k.Name, limits[0], from, options))
						after, err2 := Parse(fmt.Sprintf(form, k.Name, limits[1], to, options))
						if err == nil && err2 == nil { // a kind may refuse these numbers
							pairs = append(pairs, [2]Policy{before, after})
						}
					}
				}
			}
		}
	}
	return pairs
}

// A user acts, and a deploy changes the window of a limit, forth and back. After
// each deploy, the user has at least the limit less the actions of the current
// window, and does not wait for longer than the limit demands. A bucket leaves
// what its refill has brought back. Places of a reservoir stay given.
func TestLawDeploys(t *testing.T) {
	pairs := deploys()
	rapid.Check(t, func(t *rapid.T) {
		pair := rapid.SampledFrom(pairs).Draw(t, "deploy")
		w := &policytest.World{Now: 1_700_000_000_000 + rapid.Int64Range(0, 3_600_000).Draw(t, "start"), Items: map[int64]State{}, Expires: map[int64]int64{}}
		u := user{World: w}
		for deploys := range 4 {
			p := pair[deploys%2]
			if deploys > 0 {
				u.check(t, p, pair[1-deploys%2])
			}
			for range rapid.IntRange(0, 8).Draw(t, "actions") {
				u.act(p)
				w.Now += rapid.SampledFrom([]int64{0, 1, 999, 5_000, 12_345, 60_000, 200_000, 3_600_000}).Draw(t, "pause")
			}
		}
	})
}

// A user remembers each action, what each limit counted after the last one, and
// the latest place that a reservoir gave.
type user struct {
	*policytest.World
	acted []int64
	last  int64
	used  [2]int64
	place int64
}

func (u *user) act(p Policy) {
	s := u.State(p)
	if plan, ok := p.Take(u.Now, 1, 1, s); ok {
		u.place = max(u.place, plan.ReadyAt)
		u.Take(p, 1, 1)
		u.acted, u.last = append(u.acted, u.Now), u.Now
		for i, r := range each(p.Read(u.Now, 0, u.State(p))) {
			u.used[i] = r.Used
		}
	}
}

// each returns the figures of each limit.
func each(r Reading) []Reading {
	if len(r.Each) == 0 {
		return []Reading{r}
	}
	return r.Each
}

// check fails if the limits of p have less left for the user than the law says.
// Before is the policy until now.
func (u *user) check(t *rapid.T, p, before Policy) {
	s := u.State(p)
	for i, rate := range p.Rates() {
		got, longest, least := each(p.Read(u.Now, 1, s))[i], rate.Window, rate.Limit
		switch window := rate.Window.Milliseconds(); rate.Kind {
		case "fixed":
			least -= u.since(u.Now / window * window)
		case "log":
			least -= u.since(u.Now - window + 1)
		case "sliding":
			least -= u.since((u.Now/window - 1) * window)
			longest *= 2
		case "bucket":
			interval := window / rate.Limit
			used := max(0, u.used[i]-(u.Now-u.last)/interval)
			least -= used
			longest = time.Duration(max(0, used-rate.Limit+1)*interval) * time.Millisecond
		case "reservoir":
			u.checkPlace(t, p, rate)
			least, longest = 0, max(0, time.Duration(u.place+window-u.Now)*time.Millisecond-rate.Ahead)
		default: // this law does not know the kind
			continue
		}
		if got.Remaining < least || got.Wait > longest {
			t.Fatalf("%q becomes %q: the user acted at %v, it is %d, and %v has %d left and waits %v, want at least %d and at most %v",
				before, p, u.acted, u.Now, s, got.Remaining, got.Wait, least, longest)
		}
	}
}

// since returns how many actions there were from then on.
func (u *user) since(then int64) (n int64) {
	for _, at := range u.acted {
		if at >= then {
			n++
		}
	}
	return n
}

// checkPlace fails if the next place is before one that was given, or later than
// the window after it.
func (u *user) checkPlace(t *rapid.T, p Policy, rate Rate) {
	window := rate.Window.Milliseconds()
	latest := max(u.place, u.Now) / window * window
	plan, ok := p.Take(u.Now, 1, 1, u.State(p))
	if ok && (plan.ReadyAt < latest || plan.ReadyAt > latest+window) {
		t.Fatalf("%q: the latest place was %d, it is %d, and the next place is %d", p, u.place, u.Now, plan.ReadyAt)
	}
}

// A window beside others counts after a deploy if it began within the current
// one. A release gives back what it counts, and nothing of an earlier window.
func TestAWindowBesideOthersAfterADeploy(t *testing.T) {
	const even = 1_700_000_040_000 // a minute with an even number: 2m windows begin then
	for _, tt := range []struct {
		before, after string
		acts          []time.Duration
		now           time.Duration
		left          int64
		back          []bool // whether each act can be given back at now
	}{
		{"10/1m", "10/2m", []time.Duration{10 * time.Second}, 20 * time.Second, 9, []bool{true}},
		{"10/1m", "10/2m", []time.Duration{10 * time.Second}, 80 * time.Second, 9, []bool{true}},
		{"10/1m", "10/2m", []time.Duration{70 * time.Second}, 80 * time.Second, 9, []bool{true}},
		{"10/1m", "10/2m", []time.Duration{10 * time.Second, 70 * time.Second}, 80 * time.Second, 9, []bool{false, true}},
		{"10/1m", "10/2m", []time.Duration{70 * time.Second}, 120 * time.Second, 10, []bool{false}},
		{"10/2m", "10/1m", []time.Duration{10 * time.Second}, 20 * time.Second, 9, []bool{true}},
		{"10/2m", "10/1m", []time.Duration{10 * time.Second}, 80 * time.Second, 10, []bool{false}},
		{"10/2m", "10/1m", []time.Duration{70 * time.Second}, 80 * time.Second, 10, []bool{false}},
	} {
		before, after := Must("a: "+tt.before+", month: 1000/30d"), Must("a: "+tt.after+", month: 1000/30d")
		var s State
		for _, at := range tt.acts {
			s = take(t, before, even+at.Milliseconds(), 1, s)
		}
		now := even + tt.now.Milliseconds()
		if r := after.Read(now, 1, s).Each[0]; r.Remaining != tt.left || r.Wait != 0 {
			t.Errorf("%s becomes %s: after actions at %v, at %v %d are left and the wait is %v, want %d and none", tt.before, tt.after, tt.acts, tt.now, r.Remaining, r.Wait, tt.left)
		}
		for i, at := range tt.acts {
			u, _ := after.Undo(now, even+at.Milliseconds(), even+at.Milliseconds(), 1, s)
			if back := u.Apply(s).Get("a_s") < s.Get("a_s"); back != tt.back[i] {
				t.Errorf("%s becomes %s: the action at %v is given back at %v: %v, want %v", tt.before, tt.after, at, tt.now, back, tt.back[i])
			}
		}
	}
}

// A plan can be old: it comes from a state that the item had before a reset or a
// release, perhaps with a window of an earlier deploy. If its guard holds in the item
// anyway, it adds to what the item counts, and fits.
func TestAnOldPlanAddsToWhatTheItemCounts(t *testing.T) {
	p := Must("a: 3/1m, b: 9/1h")
	const minute, now = 1_700_000_040_000, 1_700_000_090_000
	var states []State
	for _, start := range []int64{0, minute - 60_000, minute - 20_000, minute, minute + 10_000, minute + 40_000} {
		for count := range int64(4) {
			states = append(states, policytest.Values{"a_s": start*1_000_000 + count}.State())
		}
	}
	held := 0
	for _, known := range states {
		for _, item := range states {
			for n := int64(1); n <= 3; n++ {
				u, ok := p.Take(now, n, 0, known)
				if !ok || !u.Holds(item) {
					continue
				}
				held++
				before, after := p.Read(now, 0, item).Each[0].Used, p.Read(now, 0, u.Apply(item)).Each[0].Used
				if after != before+n || after > 3 {
					t.Errorf("%d more, planned from %v, in %v: %d count, and then %d", n, known, item, before, after)
				}
			}
		}
	}
	if held < 100 {
		t.Errorf("only %d plans held", held)
	}
}

// Two versions of a limit run side by side, during a deploy or a canary: a sliding counter with
// two windows, or one beside a log. Each works as if the other did not exist, also on an instance
// that does not know the item, and so do the slots that a log had taken before.
func TestSlidingCountersSideBySide(t *testing.T) {
	logs := []string{"log 10/1h", "log 10/12h"}
	texts := slices.Clone(logs)
	for _, window := range []string{"2s", "10s", "1m", "5m", "1h", "6h", "1d", "7d", "30d", "90d", "366d"} {
		texts = append(texts, "sliding 10/"+window)
	}
	for _, one := range texts {
		for _, other := range texts {
			if one == other || slices.Contains(logs, one) && slices.Contains(logs, other) {
				continue
			}
			pair := []Policy{Must(one), Must(other)}
			short := min(pair[0].Rates()[0].Window, pair[1].Rates()[0].Window).Milliseconds()
			sideBySide(t, pair, 400, func(i int64) int64 { return i * i * i * 7 }) // up to five days
			sideBySide(t, pair, 1000, func(i int64) int64 { return i * short / 40 })
		}
	}
}

func sideBySide(t *testing.T, pair []Policy, steps int64, after func(i int64) int64) {
	t.Helper()
	alone := []State{{}, {}}
	both := policytest.Values{"c0": 1, "c9": 2}.State()
	for i := range steps {
		now := 1_700_000_000_000 + after(i)
		for j, p := range pair {
			known := both
			if i%7 == 0 {
				known = nil
			}
			u, ok := p.Take(now, 1, uint64(i), known)
			if !ok || !u.Holds(both) {
				u, ok = p.Take(now, 1, uint64(i), both)
			}
			if want := p.Read(now, 1, alone[j]).Wait == 0; ok != want {
				t.Fatalf("%s beside %s at %d: allowed %v, want %v: %v", p, pair[1-j], now, ok, want, both)
			}
			if ok {
				u.ApplyTo(&both)
				u, _ := p.Take(now, 1, 1, alone[j])
				u.ApplyTo(&alone[j])
			}
		}
	}
	most := 12
	if pair[0].HasLog() || pair[1].HasLog() {
		most += 11 // its slots and top
	}
	if both.Get("c0") != 1 || both.Get("c9") != 2 || len(both) > most {
		t.Errorf("%s beside %s: %v", pair[0], pair[1], both)
	}
}

// Whatever the pauses of a user are, and however often deploys change the window, a
// sliding counter leaves at most 16 counters in the item. They take less than 400 bytes.
func TestASlidingCountersItemStaysSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := State{}, int64(1_700_000_000_000)
		texts := rapid.SliceOfN(rapid.SampledFrom([]string{"5ms", "10s", "1m", "61s", "1h", "1d", "30d", "366d"}), 1, 3).Draw(t, "windows")
		for range rapid.IntRange(1, 60).Draw(t, "actions") {
			p := Must("sliding 1/" + rapid.SampledFrom(texts).Draw(t, "deploy"))
			now += rapid.SampledFrom([]int64{0, 3, 5, 9_000, 60_000, 3_600_000, 86_400_000, 31 * 86_400_000, 70 * 86_400_000, 400 * 86_400_000}).Draw(t, "pause")
			if u, ok := p.Take(now, 1, 1, s); ok {
				u.ApplyTo(&s)
			}
			if len(s) > 16 {
				t.Fatalf("%q leaves %d counters: %v", p, len(s), s)
			}
		}
	})
}
