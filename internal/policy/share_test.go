package policy_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

// A pair is two limits, and the error if they shall share a count.
type pair struct{ a, b, want string }

// join compares the errors of a function, CompatibleTiers or CompatibleInGroup.
func join(t *testing.T, function func(a, b Policy) error, pairs []pair) {
	t.Helper()
	for _, tt := range pairs {
		got := ""
		if err := function(Must(tt.a), Must(tt.b)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q, %q:\n got %s\nwant %s", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestShare(t *testing.T) {
	join(t, CompatibleTiers, []pair{
		{"10/1m", "20/1m", ""},
		{"log 100/12h", "log 50/12h", ""},
		{"sliding 50/1h", "sliding 1000/60m", ""},
		{"bucket 10/1m burst 15", "bucket 1/5s keep 1h", ""}, // the windows of buckets may differ
		{"reservoir 10/10s ahead 15m", "reservoir 20/10s", ""},
		{"minute: 10/1m, day: 200/1d", "day: 400/1d, minute: 20/1m", ""}, // their order means nothing
		{"minute: 10/1m, pace: bucket 1/5s", "minute: 20/1m, pace: bucket 1/1h", ""},

		{"lockout 5/15m for 30m", "lockout 9/15m for 1m to 1d", ""},
		{"lockout 5/15m for 30m", "lockout 5/1h for 30m", `window of "lockout 5/1h for 30m" is 1h, want 15m as in "lockout 5/15m for 30m", with which it shares a count`},
		{"lockout 5/15m for 30m", "9/15m", `"9/15m" counts in another way than "lockout 5/15m for 30m", with which it shares a count; did you mean "lockout 9/15m for 30m"?`},

		{"10/1m cost 2", "20/1m cost 2", ""},
		{"10/1m cost 2", "10/1m", `cost of "10/1m" is 1, want 2 as in "10/1m cost 2", with which it shares a count`}, // a release would give back more than its check took
		{"10/1m", "10/1h", `window of "10/1h" is 1h, want 1m as in "10/1m", with which it shares a count`},
		{"log 100/12h", "log 100/1d", `window of "log 100/1d" is 1d, want 12h as in "log 100/12h", with which it shares a count`},
		{"sliding 50/1h", "20/1m", `"20/1m" counts in another way than "sliding 50/1h", with which it shares a count; did you mean "sliding 20/1m"?`},
		{"bucket 1/5s", "1/5s", `"1/5s" counts in another way than "bucket 1/5s", with which it shares a count; did you mean "bucket 1/5s"?`},
		{"10/1m", "bucket 20/1m burst 30", `"bucket 20/1m burst 30" counts in another way than "10/1m", with which it shares a count; did you mean "20/1m"?`},
		{"10/1m", "reservoir 20/1m ahead 15m", `"reservoir 20/1m ahead 15m" counts in another way than "10/1m", with which it shares a count; did you mean "20/1m"?`},

		{"10/1m", "minute: 10/1m, day: 200/1d", `"10/1m" has 1 limit and "minute: 10/1m, day: 200/1d" has 2, want the same limits, because they share a count`},
		{
			"minute: 10/1m, hour: 50/1h, day: 200/1d", "minute: 10/1m, day: 200/1d", // it leaves one out
			`"minute: 10/1m, hour: 50/1h, day: 200/1d" has 3 limits and "minute: 10/1m, day: 200/1d" has 2, want the same limits, because they share a count`,
		},
		{"minute: 10/1m, day: 200/1d", "minute: 10/1m, week: 200/7d", `"minute: 10/1m, day: 200/1d" has no limit named "week", but "minute: 10/1m, week: 200/7d" has one, and they share a count`},
		{
			"minute: 10/1m, day: 200/1d", "minute: 10/1h, day: log 100/1d",
			`window of limit "minute" of "minute: 10/1h, day: log 100/1d" is 1h, want 1m as in "minute: 10/1m, day: 200/1d", with which it shares a count` + "\n" +
				`limit "day" of "minute: 10/1h, day: log 100/1d" counts in another way than in "minute: 10/1m, day: 200/1d", with which it shares a count; did you mean "day: 100/1d"?`,
		},
	})
}

// An activity's tiers have the same names and costs, even if there is one limit only.
func TestShareWithNames(t *testing.T) {
	join(t, CompatibleTiers, []pair{
		{"writes: 100/1h cost 5", "writes: 200/1h cost 5", ""},
		{"writes: 100/1h", "100/1h", `"100/1h" has no name, want one as in "writes: 100/1h", with which it shares a count`},
		{"100/1h", "writes: 100/1h", `"100/1h" has no limit named "writes", but "writes: 100/1h" has one, and they share a count`},
		{"posts: 10/1m, writes: 100/1h cost 5", "posts: 10/1m, writes: 100/1h cost 4", `cost of limit "writes" of "posts: 10/1m, writes: 100/1h cost 4" is 4, want 5 as in "posts: 10/1m, writes: 100/1h cost 5", with which it shares a count`},
	})
}

// Activities of a group meet if limits with the same name count alike. Numbers, costs and
// other names do not matter.
func TestMeet(t *testing.T) {
	join(t, CompatibleInGroup, []pair{
		{"writes: 100/1h", "writes: 80/1h", ""}, // a reserve of 20 for the first one
		{"writes: 100/1h", "writes: 100/1h cost 5", ""},
		{"posts: 10/1m, writes: 100/1h", "writes: 100/1h, likes: log 5/1d", ""},
		{"posts: 10/1m", "comments: log 60/1d", ""},
		{"pace: bucket 10/1m", "pace: bucket 1/1h burst 3 cost 2", ""}, // the windows of buckets may differ

		{"try: lockout 5/15m for 30m", "try: lockout 5/15m for 30m, day: 20/1d", ""},
		{"try: lockout 5/15m for 30m", "try: lockout 5/15m for 31m", `limit "try" of "try: lockout 5/15m for 31m" is lockout 5/15m for 31m, want lockout 5/15m for 30m as in "try: lockout 5/15m for 30m", because a lock of one is a lock of both`},
		{"writes: 100/1h", "writes: 100/1d", `window of limit "writes" of "writes: 100/1d" is 1d, want 1h as in "writes: 100/1h", with which it shares a count`},
		{"slots: log 3/10m", "slots: log 3/1h", `window of limit "slots" of "slots: log 3/1h" is 1h, want 10m as in "slots: log 3/10m", with which it shares a count`},
		{"writes: 100/1h", "writes: sliding 50/1h", `limit "writes" of "writes: sliding 50/1h" counts in another way than in "writes: 100/1h", with which it shares a count; did you mean "writes: 50/1h"?`},
		{
			"writes: 100/1h, posts: 10/1m", "posts: 10/1h, writes: log 9/1h",
			`window of limit "posts" of "posts: 10/1h, writes: log 9/1h" is 1h, want 1m as in "writes: 100/1h, posts: 10/1m", with which it shares a count` + "\n" +
				`limit "writes" of "posts: 10/1h, writes: log 9/1h" counts in another way than in "writes: 100/1h, posts: 10/1m", with which it shares a count; did you mean "writes: 9/1h"?`,
		},
	})
}

func TestEachLimitIsAPolicyOfItsOwn(t *testing.T) {
	for _, k := range Kinds() {
		for _, text := range k.Examples {
			single, err := Parse("a: " + text + ", b: 10/1m")
			if err != nil {
				continue // this one can only stand alone
			}
			each := single.Each()
			if len(each) != 2 || !each[0].Equal(Must(text)) || !each[1].Equal(Must("10/1m")) {
				t.Errorf("the limits of %q are %v", single, each)
			}
		}
	}
}

// A live limit without an option, a zone, a cost or a max has the code's, and no other one.
func TestOptionsOf(t *testing.T) {
	for _, tt := range []struct{ p, q, want string }{
		{"bucket 1/2s", "bucket 1/5s keep 1h", "bucket 1/2s keep 1h"},
		{"bucket 1/2s keep 2h", "bucket 1/5s keep 1h", "bucket 1/2s keep 2h"},
		{"bucket 1/5s", "bucket 1/5s burst 3", "bucket 1/5s"}, // a burst changes how much is allowed
		{"reservoir 20/10s", "reservoir 10/10s ahead 15m", "reservoir 20/10s ahead 15m"},
		{"20/1m", "10/1m", "20/1m"},
		{"b: 2/1m, a: bucket 1/2s", "a: bucket 1/5s keep 1h, b: 1/1m", "b: 2/1m, a: bucket 1/2s keep 1h"},
		{"20/1m", "10/1m cost 2", "20/1m cost 2"},
		{"20/1m cost 3", "10/1m cost 2", `cost of "20/1m cost 3" is 3, want 2`},
		{"1/1m", "10/1m cost 2", "cost is 2, want at most the 1"},
		{"20/1m", "10/1m max 100", "20/1m max 100"},
		{"200/1m", "10/1m max 100", "200/1m max 200"}, // its own limit is higher
		{"20/1m max 30", "10/1m max 100", "20/1m max 30"},
		{"20/1m max 500", "10/1m max 100", "20/1m max 500"},
		{"20/1m max 30", "10/1m", `"20/1m max 30" has a max, but "10/1m" has none`},
		{"300/day", "200/day in Europe/Berlin", "300/day in Europe/Berlin"},
		{"300/day in Asia/Tokyo", "200/day in Europe/Berlin", "is day in Asia/Tokyo, want day in Europe/Berlin"},
		{"300/1d", "200/day in Europe/Berlin", "is 1d, want day in Europe/Berlin"},
		{"300/week", "200/day in Europe/Berlin", "is week in Europe/Berlin, want day in Europe/Berlin"},
	} {
		p, err := Must(tt.p).WithDefaults(Must(tt.q))
		if got := p.String(); got != tt.want && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q with the options of %q is %q, %v, want %q", tt.p, tt.q, got, err, tt.want)
		}
	}
}

// AtOnce refuses what a queue delays. Everything else stays.
func TestAtOnce(t *testing.T) {
	for text, want := range map[string]string{
		"reservoir 10/10s ahead 15m":                    "reservoir 10/10s",
		"day: 200/1d, jobs: reservoir 10/10s ahead 15m": "day: 200/1d, jobs: reservoir 10/10s",
		"reservoir 10/10s":                              "reservoir 10/10s",
		"bucket 10/1m burst 15":                         "bucket 10/1m burst 15",
	} {
		if got := Must(text).AtOnce(); got.String() != want {
			t.Errorf("%s at once is %s, want %s", text, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	for text, want := range map[string]string{
		"posts: 10/1m, writes: 100/1h cost 2": "posts: 10/1m, writes: 200/1h",
		"writes: 100/1h":                      "writes: 200/1h",
		"posts: 10/1m, likes: log 5/1h":       "posts: 10/1m, likes: log 5/1h",
	} {
		if got := Must(text).Replace("writes", "200/1h"); got != want {
			t.Errorf("%s becomes %q, want %q", text, got, want)
		}
	}
	p := Must("posts: 10/1m, writes: 100/1h cost 5")
	if !p.Named() || p.Part("writes") != "100/1h cost 5" || p.Part("likes") != "" || Must("10/1m").Named() || Must("10/1m").Part("writes") != "" || (Policy{}).Named() {
		t.Error("a policy has other names than it was given")
	}
}

// Free gives back in a log alone. With one limit of another kind it gives back nothing.
func TestFree(t *testing.T) {
	const minute = int64(60_000)
	for _, tt := range []struct {
		text   string
		age, n int64
		want   []int64 // used after Free, by limit; nil: it gives back nothing
	}{
		{"day: 9/1d, now: log 5/10m", 5 * minute, 2, []int64{3, 1}},
		{"now: log 9/10m cost 3, pace: bucket 9/1d", 5 * minute, 3, []int64{0, 3}},
		{"now: log 5/10m", 10*minute - 1, 3, []int64{0}},
		{"now: log 5/10m", 10 * minute, 3, nil},
		{"now: log 5/10m", 0, 4, nil}, // only 3 count
		{"now: log 5/10m", -1, 3, nil},
		{"now: log 5/10m", 0, 0, nil},
		{"now: log 5/10m", 0, 1_000_001, nil},
		{"day: 9/1d, hour: sliding 9/1h", 1, 1, nil},
	} {
		p, at := Must(tt.text), int64(1_700_000_000_000)
		s := take(t, p, at, 3, nil)
		u, ok := p.Free(at+tt.age, at, tt.n, s)
		if ok != (tt.want != nil) {
			t.Errorf("%s gives back %d after %d ms: %v", tt.text, tt.n, tt.age, ok)
		}
		s = u.Apply(s)
		for i, want := range tt.want {
			if got := p.Read(at+tt.age, 0, s).Each[i].Used; got != want {
				t.Errorf("%s after %d ms: %d used of limit %d, want %d", tt.text, tt.age, got, i, want)
			}
		}
	}
}

// An item matters as long as any limit that counts there. Others in the item change
// no decision, and a policy that refuses what it delays has them as well.
func TestBeside(t *testing.T) {
	const now = 1_700_000_000_000
	short, long := Must("posts: 10/1m"), Must("all: 100/1d, now: log 3/1h")
	_, alone := short.Item(now)
	_, longest := long.Item(now)
	for _, p := range []Policy{short.Beside(short, long), short.Beside(long), short.Beside(long).AtOnce()} {
		if window, expires := p.Item(now); window != 0 || expires != longest || expires <= alone || !p.Equal(short) {
			t.Errorf("%v: window %d, expires %d, want 0 and %d", p, window, expires, longest)
		}
	}
	// A live limit keeps what lies beside the code's, and counts for no longer.
	p, err := Must("pace: bucket 5/1m").WithDefaults(Must("pace: bucket 10/1m").Beside(Must("slow: bucket 1/1h")))
	if _, expires := p.Item(now); err != nil || expires < now/1000+3600 {
		t.Errorf("%v, %v, expires at %d", p, err, expires)
	}
	if p, err := Must("posts: 5/1m").WithDefaults(short.Beside(long)); err != nil {
		t.Error(err)
	} else if _, expires := p.Item(now); expires != longest {
		t.Errorf("the item of a live limit expires at %d, want %d as that of the code's", expires, longest)
	}
}

// A live limit of a group may give places, or keep actions, for longer than the code's only if
// another limit keeps the item that long at any time.
func TestALiveLimitLastsNoLongerThanItsGroup(t *testing.T) {
	for _, tt := range []struct {
		live, code, other string
		ok                bool
	}{
		{"jobs: reservoir 10/10s ahead 15m", "jobs: reservoir 10/10s ahead 15m", "notes: 10/1m", true},
		{"jobs: reservoir 20/10s ahead 1m", "jobs: reservoir 10/10s ahead 15m", "notes: 10/1m", true},
		{"jobs: reservoir 10/10s ahead 1h", "jobs: reservoir 10/10s ahead 15m", "notes: 10/1m", false},
		{"jobs: reservoir 10/10s ahead 901s", "jobs: reservoir 10/10s ahead 15m", "notes: 10/1m", false},
		{"jobs: reservoir 10/10s ahead 1h", "jobs: reservoir 10/10s", "notes: 10/1d", false}, // the day can end at once
		{"jobs: reservoir 10/10s ahead 1h", "jobs: reservoir 10/10s", "notes: log 10/1d", true},
		{"jobs: reservoir 10/10s ahead 1h", "jobs: reservoir 10/10s", "notes: log 10/1h", false}, // its last window ends 10 s later
		{"jobs: reservoir 10/10s ahead 1h", "jobs: reservoir 10/10s", "notes: sliding 10/2h", true},
		{"pace: bucket 1/1h", "pace: bucket 10/1m", "pace: bucket 10/1m", false},
		{"pace: bucket 1/1h", "pace: bucket 10/1m", "slow: bucket 1/1h", true},
		{"pace: bucket 1/1h", "pace: bucket 10/1m", "day: 9/1d", false}, // a day can end at once, and then it keeps the item for two minutes
		{"pace: bucket 1/1h", "pace: bucket 10/1m", "jobs: reservoir 10/10s ahead 2h", true},
		{"pace: bucket 1/1h", "pace: bucket 10/1m", "jobs: reservoir 10/1d ahead 30m", false}, // its window can end at once
		{"pace: bucket 1/1m keep 2h", "pace: bucket 10/1m", "notes: log 10/1h", false},
		{"now: log 20/1h", "now: log 10/1h", "notes: 10/1m", true},
		{"now: sliding 20/1h, day: 20/1d", "now: sliding 10/1h, day: 10/1d", "notes: 10/1m", true},
	} {
		code, other := Must(tt.code), Must(tt.other)
		live, err := Must(tt.live).WithDefaults(code.Beside(code, other))
		want := fmt.Sprintf("%q counts for longer than the item that it shares is kept", tt.live)
		if tt.ok != (err == nil) || !tt.ok && err.Error() != want {
			t.Errorf("%s for %s, beside %s: %v, want one that is accepted: %v", tt.live, tt.code, tt.other, err, tt.ok)
		}
		for at := int64(start); err == nil && at < start+7_200_000; at += 999 {
			_, own := Must(live.String()).Item(at)
			if _, kept := other.Beside(code, other).Item(at); kept < own {
				t.Fatalf("%s for %s: at %d the item is kept until %d, and the live limit counts until %d", tt.live, tt.code, at, kept, own)
			}
		}
	}
}

// An activity that holds its receipts takes at most 500 actions a minute, and none in advance.
func TestCheckHold(t *testing.T) {
	for text, ok := range map[string]bool{
		"500/1m": true, "501/1m": false, "100000/1m cost 200": true, "100000/1m cost 199": false,
		"bucket 10/1s": false, "bucket 8/1s burst 100": true, "sliding 30000/1h": true, "1000000/1d": false,
		"log 100/1m": true, "log 100/1s": false, "a: 10/1m, b: 10/1s": false,
		"101/1m": true, "101/1m prepaid": false, "100000/month in Europe/Berlin prepaid": false,
	} {
		if err := Must(text).CheckHold(); (err == nil) != ok {
			t.Errorf("%s with Hold: %v, want one that is accepted: %v", text, err, ok)
		}
	}
}

func TestHeldUntil(t *testing.T) {
	for text, want := range map[string]int64{"log 3/10m": 600_007, "day: 9/1d, now: log 3/6s": 6_007, "10/1m": 0, "bucket 1/5s": 0, "day: 9/1d, hour: 5/1h": 0} {
		if got := Must(text).HeldUntil(7); got != want {
			t.Errorf("%s: a receipt at 7 counts until %d, want %d", text, got, want)
		}
	}
}
