package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

const forms = "10/1m, bucket 10/1m burst 15, log 100/12h, sliding 50/1h, reservoir 10/10s ahead 15m, lockout 5/15m for 30m"

// Each error begins with the text as it was written. Then it names the mistake
// and what is accepted.
func TestParseErrors(t *testing.T) {
	const units = "want 1ms to 366d (units ms, s, m, h, d)"
	for _, tt := range []struct{ text, want string }{
		{"", `a limit is empty; want ` + forms},
		{"10/1m,", `a limit is empty; want ` + forms},
		{"10", `"10" is not a kind of limit and has no slash; want ` + forms},
		{"10 / 1m", `"10" is not a kind of limit and has no slash; want ` + forms},
		{"fixd 10/1m", `"fixd" is not a kind of limit and has no slash; want ` + forms},
		{"bucket", `bucket has no actions and no window, as in bucket 10/1m burst 15`},

		{"0/1m", `actions are "0", want 1 to 1000000, as in 10/1m`},
		{"-1/1m", `actions are "-1", want 1 to 1000000, as in 10/1m`},
		{"010/1m", `actions are "010", want 1 to 1000000, as in 10/1m`},
		{"sliding 1000001/1m", `actions are "1000001", want 1 to 1000000, as in sliding 50/1h`},
		{"1000000000000000000000/1m", `actions are "1000000000000000000000", want 1 to 1000000, as in 10/1m`},
		{"/1m", `actions are "", want 1 to 1000000, as in 10/1m`},
		{"\xff/1m", `actions are "\xff", want 1 to 1000000, as in 10/1m`},

		{"10/", `window is "", ` + units + `, or day, week or month, as in 10/1m`},
		{"10/1", `window is "1", ` + units + `, or day, week or month, as in 10/1m`},
		{"10/m", `window is "m", want 1m, as in 10/1m`},
		{"10/1min", `window is "1min", want 1m, as in 10/1m`},
		{"10/1hour", `window is "1hour", want 1h, as in 10/1h`},
		{"100/hour", `window is "hour", want 1h, as in 100/1h`},
		{"log 100/12Hours", `window is "12Hours", want 12h, as in log 100/12h`},
		{"10/90secs", `window is "90secs", want 90s, as in 10/90s`},
		{"10/1month", `window is "1month", want month, as in 10/month`},
		{"10/Days", `window is "Days", want day, as in 10/day`},
		{"10/2weeks", `window is "2weeks", want 14d, as in 10/14d`},
		{"log 10/week", `window is "week", want 7d, as in log 10/7d`},
		{"log 10/month", `window is "month", ` + units + `, as in log 100/12h`},
		{"10/99999days", `window is "99999days", ` + units + `, or day, week or month, as in 10/1m`},
		{"10/1M", `window is "1M", ` + units + `, or day, week or month, as in 10/1m`},
		{"10/1.5h", `window is "1.5h", ` + units + `, or day, week or month, as in 10/1m`},
		{"log 10/0s", `window is "0s", ` + units + `, as in log 100/12h`},
		{"10/367d", `window is "367d", ` + units + `, or day, week or month, as in 10/1m`},
		{"10/1m/1h", `window is "1m/1h", ` + units + `, or day, week or month, as in 10/1m`},

		{"10/1m burst 5", `"burst" is not an option of a fixed limit; a bucket limit has it, as in bucket 10/1m burst 15`},
		{"bucket 10/1m ahead 5m", `"ahead" is not an option of a bucket limit; a reservoir limit has it, as in reservoir 10/10s ahead 15m`},
		{"bucket 10/1m bust 5", `"bust" is not an option of a bucket limit; want burst or keep or cost or prepaid or max`},
		{"10/1m 5", `"5" is not an option of a fixed limit; want in or cost or prepaid or max`},
		{"a: 10/1m b: 5/1h", `"b:" is not an option of a fixed limit; a comma separates limits, as in minute: 10/1m, day: 200/1d`},
		{"10/1m max 9", `max is 9, want at least the limit, 10`},
		{"bucket 1/4s burst 2 max 1 cost 2", `max is 1, and an action costs 2, so each number would refuse it`},
		{"10/1m max 0", `max is "0", want 1 to 1000000`},
		{"10/1m max 1000001", `max is "1000001", want 1 to 1000000`},
		{"101/1m max 200 prepaid", `max does not go with prepaid, because a lease would be by the number of one caller`},
		{"reservoir 10/10s max 20", `"max" is not an option of a reservoir limit; a place that was given stays given, whatever number comes next`},
		{"lockout 5/15m for 30m max 9", `"max" is not an option of a lockout limit; a caller with another number would end the lock or begin it`},
		{"log 10/1m max 101", `max is 101, want at most 100, because each action takes a slot of the item`},
		{"a: 10/1d max 1000000, b: 5/1d", `a: max is 1000000, want at most 999999, beside other limits`},
		{"bucket 10/1m max 6667", `max is 6667, want at most 6666, so that an action comes back every 9 ms or more`},
		{"bucket 10/1d burst 1000 max 10001", `max is 10001, and the burst would be 1000100, want at most 1000000`},
		{"100/1m max 30000", `max is 30000 in 1m, want at most 21428, because the item keeps an id for each request of the last 28s; divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units`},
		{"bucket 10/1m burst 5 burst 6", `option burst is repeated`},
		{"bucket 10/1m burst", `option burst has no value`},
		{"bucket 10/1m burst x", `burst is "x", want 1 to 1000000`},
		{"bucket 10/1m burst 1000001", `burst is "1000001", want 1 to 1000000`},
		{"bucket 10/1m keep 1hour", `keep is "1hour", want 1h`},
		{"reservoir 10/1m ahead 15min", `ahead is "15min", want 15m`},
		{"bucket 10/1m keep 1y", `keep is "1y", ` + units},
		{"reservoir 10/1m ahead 0s", `ahead is "0s", ` + units},

		{"1/2ms", "window is 2ms, want at least 3ms, because the item keeps an id for each request of the last 28s"},
		{"21429/1m", `limit is 21429 in 1m, want at most 21428, because the item keeps an id for each request of the last 28s; write prepaid behind it, divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units`},
		{"log 101/1h", `limit is 101, want at most 100, because each action takes a slot of the item; did you mean "sliding 101/1h"?`},
		{"reservoir 1000000/1h", `limit is 1000000, want at most 999999 for a reservoir`},
		{"bucket 7/1m", `window is 1m, want a multiple of 7ms, such as 60004ms, so that an action comes back every whole number of milliseconds`},
		{"bucket 1/366d burst 2", `burst is 2, and one action comes back every 366d; want a bucket that is full again within 366d`},

		{": 10/1m", `there is no name before the colon`},
		{"10/1m, 5/1h", `a limit has no name; each of several limits has one, as in minute: 10/1m, day: 200/1d`},
		{"a: 10/1m, a: 5/1h", `two limits have the name "a"`},
		{"Minute: 10/1m, b: 5/1h", `name of a limit is "Minute", want 1 to 8 letters a to z, as in minute: 10/1m, day: 200/1d`},
		{"morethan: 1/1m, morethan8: 1/1h", `name of a limit is "morethan8", want 1 to 8 letters a to z, as in minute: 10/1m, day: 200/1d`},
		{"a: log 10/1m, b: log 5/1h", `two limits are of the kind log, want at most one of them`},
		{"a: 1000000/1m, b: 1/1m", `a: limit is 1000000, want at most 999999 beside other limits`},
		{"lockout 5/15m", `lockout 5/15m has no lock; write for and how long, as in lockout 5/15m for 30m`},
		{"lockout 5/15m to 1d", `lockout 5/15m has no lock; write for and how long, as in lockout 5/15m for 30m`},
		{"lockout 5/15m for 30min", `for is "30min", want 30m`},
		{"lockout 5/15m for 30m to 1month", `to is "1month", ` + units},
		{"lockout 5/15m for 30m to 29m", `to is 29m, want at least the 30m of for`},
		{"lockout 5/15m for 999ms", `for is 999ms, want at least 1s`},
		{"lockout 5/999ms for 1s", `window is 999ms, want at least 1s for a lockout`},
		{"lockout 1001/15m for 1m", `limit is 1001, want at most 1000 attempts for a lockout`},
		{"lockout 1000/15m for 2s", `limit is 1000 in 2s, want at most 714, because the item keeps an id for each request of the last 28s; divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units`},
		{"lockout 5/15m for 1m for 1m", `option for is repeated`},
		{"lockout 5/day for 1m", `window is "day", want 1d, as in lockout 5/1d`},
		{"lockout 5/15m for 1m cost 2", `"cost" is not an option of a lockout limit; with a cost of 2 and a limit of 5, the count would stay at 4, and nothing would lock`},
		{"lockout 500/15m for 1m prepaid", `"prepaid" is not an option of a lockout limit; what is taken in advance can't be given back, as an attempt that succeeds is`},
		{"10/1m for 1m", `"for" is not an option of a fixed limit; a lockout limit has it, as in lockout 5/15m for 30m`},
		{"a: lockout 5/15m for 1m, b: reservoir 1/1s", `a lockout can't stand beside a reservoir, because a place that was given is not given back`},
		{"a: reservoir 1/1s, b: lockout 5/15m for 1m", `a lockout can't stand beside a reservoir, because a place that was given is not given back`},

		{"a: 10/1m, b: bucket 7/1m", `b: window is 1m, want a multiple of 7ms, such as 60004ms, so that an action comes back every whole number of milliseconds`},
		{"10/1m cost 11", `cost is 11, want at most the 10 that one action can take`},
		{"bucket 10/1m burst 5 cost 6", `cost is 6, want at most the 5 that one action can take`},
		{"a: 10/1m, b: 10/1h cost 11", `b: cost is 11, want at most the 10 that one action can take`},
		{"10/1m cost 0", `cost is "0", want 1 to 1000000`},
		{"reservoir 10/10s cost 2", `"cost" is not an option of a reservoir limit; a fixed limit has it, as in 10/1m`},
		{"1000000/1m cost 20", `limit is 50000 in 1m, want at most 21428, because the item keeps an id for each request of the last 28s; write prepaid behind it, divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units`},

		{"200/day in Europe/Berlni", `time zone is "Europe/Berlni", want a name of the IANA database, such as Europe/Berlin`},
		{"200/day in Local", `time zone is "Local", want a name of the IANA database, such as Europe/Berlin`},
		{"200/day in ../etc", `time zone is "../etc", want a name of the IANA database, such as Europe/Berlin`},
		{"200/day in", `option in has no value`},
		{"200/1d in Europe/Berlin", `in is "Europe/Berlin", want a time zone such as Europe/Berlin, after a day, week or month`},
		{"sliding 200/day", `window is "day", want 1d, as in sliding 200/1d`},
		{"200/days", `window is "days", want day, as in 200/day`},

		{"100/1m prepaid", `limit is 100 and prepaid, want at least 101; a lower one needs no leases`},
		{"1000/1m cost 10 prepaid", `limit is 100 and prepaid, want at least 101; a lower one needs no leases`},
		{"bucket 100/1s burst 130 prepaid", `burst is prepaid, and 97 are left of it without what comes back while a lease lasts, want at least 101; fewer need no leases`},
		{"log 100/1h prepaid", `"prepaid" is not an option of a log limit; each of its actions has a place of its own in the item, so there is nothing to take in advance`},
		{"reservoir 10/10s prepaid", `"prepaid" is not an option of a reservoir limit; each of its actions has a place of its own in the item, so there is nothing to take in advance`},
		{"a: 1000/1m prepaid, b: 9000/1h", `one limit is prepaid and another is not, want all or none, because one update counts for all`},
		{"1000/1m prepaid cost 5 prepaid", `option prepaid is repeated`},
		{"1000/1m prepaid 5", `"5" is not an option of a fixed limit; want in or cost or prepaid or max`},

		{"a: 1/1m, b: 1/1m, c: 1/1m, d: 1/1m, e: 1/1m, f: 1/1m, g: 1/1m, h: 1/1m, i: 1/1m", `there are 9 limits, want at most 8`},
	} {
		_, err := Parse(tt.text)
		if err == nil || !strings.HasPrefix(err.Error(), `limit is "`) || !strings.HasSuffix(err.Error(), `": `+tt.want) {
			t.Errorf("Parse(%q):\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestStringIsTheShortestForm(t *testing.T) {
	for text, want := range map[string]string{
		" 10/60s ":                                      "10/1m",
		"fixed 10/1m":                                   "10/1m",
		"10/1440m":                                      "10/1d",
		"10/90s":                                        "10/90s",
		"lockout 5/900s for 60s to 60s":                 "lockout 5/15m for 1m",
		"lockout 5/15m to 1d for 60s":                   "lockout 5/15m for 1m to 1d",
		"bucket 10/1m burst 10":                         "bucket 10/1m",
		"bucket 10/1m  keep 60m burst 9":                "bucket 10/1m burst 9 keep 1h",
		"a:10/1m,b :\tlog 5/1000ms":                     "a: 10/1m, b: log 5/1s",
		"10/1m cost 1":                                  "10/1m",
		"100000/1m cost 200":                            "100000/1m cost 200",
		"bucket 10/1m keep 1h cost 2":                   "bucket 10/1m keep 1h cost 2",
		"200/day in UTC":                                "200/day",
		"5/week in Asia/Tokyo cost 2":                   "5/week in Asia/Tokyo cost 2",
		"day: 200/day cost 2 in Asia/Tokyo, m: 9/month": "day: 200/day in Asia/Tokyo cost 2, m: 9/month",
	} {
		p, err := Parse(text)
		if err != nil || p.String() != want {
			t.Errorf("Parse(%q) = %q, %v, want %q", text, p, err, want)
		}
	}
	if got := (Policy{}).String(); got != "" {
		t.Errorf("the zero Policy is %q, want an empty text", got)
	}
}

func TestAPolicyIsTextInJSON(t *testing.T) {
	var got struct{ Limit Policy }
	testkit.OK(t, json.Unmarshal([]byte(`{"Limit":"fixed 10/60s"}`), &got))
	if text, err := json.Marshal(got); err != nil || string(text) != `{"Limit":"10/1m"}` {
		t.Errorf("the JSON is %s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"Limit":"10/1x"}`), &got); err == nil {
		t.Error("a wrong limit in JSON is accepted")
	}
}

// Parse never panics. What it accepts, it reads back from String.
func FuzzParse(f *testing.F) {
	for _, k := range Kinds() {
		for _, text := range k.Examples {
			f.Add(text)
		}
	}
	f.Add("minute: 10/1m, day: 200/1d")
	f.Add("a: bucket 1/1ms burst 1000000 keep 366d, b: log 1/1ms, c: reservoir 999999/366d ahead 366d")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			if !p.IsZero() {
				t.Errorf("Parse(%q) = %q and %v", text, p, err)
			}
			return
		}
		again, err := Parse(p.String())
		if err != nil || !again.Equal(p) || len(again.Rates()) != len(p.Rates()) {
			t.Fatalf("Parse(%q) = %q, and Parse of that = %q, %v", text, p, again, err)
		}
		for i, r := range p.Rates() {
			if again.Rates()[i] != r {
				t.Errorf("Parse(%q) has the rate %+v, and after String %+v", text, r, again.Rates()[i])
			}
		}
		if u, ok := p.Take(1_700_000_000_000, p.Max(), 1, nil); !ok || !u.Holds(nil) {
			t.Errorf("%q does not allow its most, %d, on an empty item", p, p.Max())
		}
	})
}

// The largest numbers that the errors name are accepted.
func TestParseAcceptsTheLargestNumbers(t *testing.T) {
	for _, text := range []string{
		"40000/366d", "1/3ms", "log 100/366d", "sliding 1000000/366d", "reservoir 999999/366d ahead 366d",
		"bucket 1/366d", "bucket 1/183d burst 2", "bucket 1000000/50m", "bucket 1/3ms burst 1000000 keep 366d",
		"a: 999999/1h, b: sliding 1000000/1h", "eightabc: 1/1m, b: 1/1h",
		"a: 1/1m, b: 1/1m, c: 1/1m, d: 1/1m, e: 1/1m, f: 1/1m, g: 1/1m, h: 1/1m",
		"60000/1m prepaid", "bucket 1000/1s burst 2000 prepaid", "writes: 3000/1m cost 5 prepaid",
	} {
		if p, err := Parse(text); err != nil || p.String() != text {
			t.Errorf("Parse(%q) = %q, %v", text, p, err)
		}
	}
}

// An error shows 60 characters of a text.
func TestParseShowsATextOf60Characters(t *testing.T) {
	for _, length := range []int{60, 61, 1000} {
		_, err := Parse(strings.Repeat("x", length))
		if want := `limit is "` + strings.Repeat("x", 60) + `": `; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d characters: the error is %v, want it to begin with %s", length, err, want)
		}
	}
}
