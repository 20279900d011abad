package policy_test

import (
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

// Activities of a group meet if limits with the same name count alike. Numbers, costs and
// other names do not matter.
func TestMeet(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"writes: 100/1h", "writes: 80/1h", ""}, // a reserve of 20 for the first one
		{"writes: 100/1h", "writes: 100/1h cost 5", ""},
		{"posts: 10/1m, writes: 100/1h", "writes: 100/1h, likes: log 5/1d", ""},
		{"posts: 10/1m", "comments: log 60/1d", ""},
		{"pace: bucket 10/1m", "pace: bucket 1/1h burst 3 cost 2", ""}, // the windows of buckets may differ

		{"writes: 100/1h", "writes: 100/1d", `window of limit "writes" of "writes: 100/1d" is 1d, want 1h as in "writes: 100/1h", with which it shares a count`},
		{"slots: log 3/10m", "slots: log 3/1h", `window of limit "slots" of "slots: log 3/1h" is 1h, want 10m as in "slots: log 3/10m", with which it shares a count`},
		{"writes: 100/1h", "writes: sliding 50/1h", `limit "writes" of "writes: sliding 50/1h" counts in another way than in "writes: 100/1h", with which it shares a count; did you mean "writes: 50/1h"?`},
		{
			"writes: 100/1h, posts: 10/1m", "posts: 10/1h, writes: log 9/1h",
			`window of limit "posts" of "posts: 10/1h, writes: log 9/1h" is 1h, want 1m as in "writes: 100/1h, posts: 10/1m", with which it shares a count` + "\n" +
				`limit "writes" of "posts: 10/1h, writes: log 9/1h" counts in another way than in "writes: 100/1h, posts: 10/1m", with which it shares a count; did you mean "writes: 9/1h"?`,
		},
	} {
		got := ""
		if err := Meet(Must(tt.a), Must(tt.b)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Meet(%q, %q):\n got %s\nwant %s", tt.a, tt.b, got, tt.want)
		}
	}
}

// An activity's tiers have the same names and costs, also if there is one limit only.
func TestShareWithNames(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"writes: 100/1h cost 5", "writes: 200/1h cost 5", ""},
		{"writes: 100/1h", "100/1h", `"100/1h" has no name, want one as in "writes: 100/1h", with which it shares a count`},
		{"100/1h", "writes: 100/1h", `"100/1h" has no limit named "writes", but "writes: 100/1h" has one, and they share a count`},
		{"posts: 10/1m, writes: 100/1h cost 5", "posts: 10/1m, writes: 100/1h cost 4", `cost of limit "writes" of "posts: 10/1m, writes: 100/1h cost 4" is 4, want 5 as in "posts: 10/1m, writes: 100/1h cost 5", with which it shares a count`},
	} {
		got := ""
		if err := Share(Must(tt.a), Must(tt.b)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Share(%q, %q):\n got %s\nwant %s", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestReplace(t *testing.T) {
	instead := map[string]string{"writes": "200/1h", "": "7/1m"}
	for text, want := range map[string]string{
		"posts: 10/1m, writes: 100/1h cost 2": "posts: 10/1m, writes: 200/1h",
		"writes: 100/1h":                      "writes: 200/1h",
		"posts: 10/1m, likes: log 5/1h":       "",
	} {
		if got := Must(text).Replace(func(name string) string { return instead[name] }); got != want {
			t.Errorf("%s becomes %q, want %q", text, got, want)
		}
	}
	p := Must("posts: 10/1m, writes: 100/1h")
	if !p.Named() || !p.Has("writes") || p.Has("likes") || Must("10/1m").Named() || Must("10/1m").Has("writes") || (Policy{}).Named() {
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
		p, s, at := Must(tt.text), State{}, int64(1_700_000_000_000)
		u, _ := p.Take(at, 3, 0, s)
		u.ApplyTo(s)
		u, ok := p.Free(at+tt.age, at, tt.n, s)
		if ok != (tt.want != nil) {
			t.Errorf("%s gives back %d after %d ms: %v", tt.text, tt.n, tt.age, ok)
		}
		u.ApplyTo(s)
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
	pace := Must("pace: bucket 10/1m").Beside(Must("pace: bucket 10/1m"))
	p, err := Must("pace: bucket 5/1m").OptionsOf(pace)
	if _, expires := p.Item(now); err != nil || expires < now/1000+60 {
		t.Errorf("%v, %v, expires at %d", p, err, expires)
	}
	const want = `"pace: bucket 1/1h" counts for longer than the item that it shares is kept`
	if _, err := Must("pace: bucket 1/1h").OptionsOf(pace); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := Must("pace: bucket 1/1h").OptionsOf(Must("pace: bucket 10/1m").Beside(Must("pace: bucket 10/1m"), Must("day: 9/1d"))); err != nil {
		t.Errorf("beside a limit of a day: %v", err)
	}
}

// An activity that holds its receipts takes at most 500 actions a minute.
func TestCheckHold(t *testing.T) {
	for text, ok := range map[string]bool{
		"500/1m": true, "501/1m": false, "100000/1m cost 200": true, "100000/1m cost 199": false,
		"bucket 10/1s": false, "bucket 8/1s burst 100": true, "sliding 30000/1h": true, "1000000/1d": false,
		"log 100/1m": true, "log 100/1s": false, "a: 10/1m, b: 10/1s": false,
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
