package policy_test

import (
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

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
	pace := Must("pace: bucket 10/1m").Beside(Must("pace: bucket 10/1m"))
	const want = `"pace: bucket 1/1h" counts for longer than the item that it shares is kept`
	if _, err := Must("pace: bucket 1/1h").WithDefaults(pace); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	code := Must("pace: bucket 10/1m")
	if _, err := Must("pace: bucket 1/1h").WithDefaults(code.Beside(code, Must("slow: bucket 1/1h"))); err != nil {
		t.Errorf("beside a bucket of an hour: %v", err)
	}
	// A day can end at once, and then it keeps the item for two minutes.
	if _, err := Must("pace: bucket 1/1h").WithDefaults(code.Beside(code, Must("day: 9/1d"))); err == nil || err.Error() != want {
		t.Errorf("beside a limit of a day: %v, want %s", err, want)
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
		{"pace: bucket 1/1h", "pace: bucket 10/1m", "jobs: reservoir 10/10s ahead 2h", true},
		{"pace: bucket 1/1h", "pace: bucket 10/1m", "jobs: reservoir 10/1d ahead 30m", false}, // its window can end at once
		{"pace: bucket 1/1m keep 2h", "pace: bucket 10/1m", "notes: log 10/1h", false},
		{"now: log 20/1h", "now: log 10/1h", "notes: 10/1m", true},
		{"now: sliding 20/1h, day: 20/1d", "now: sliding 10/1h, day: 10/1d", "notes: 10/1m", true},
	} {
		code, other := Must(tt.code), Must(tt.other)
		live, err := Must(tt.live).WithDefaults(code.Beside(code, other))
		if (err == nil) != tt.ok {
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
