package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/testkit"
	. "github.com/cric-talk/guards/internal/workbench/replay"
)

func suggest(t testing.TB, limit, share, text string) (*Suggestion, error) {
	t.Helper()
	wanted := testkit.Must(ParseShare(share))(t)
	r := &Replay{Activity: "act", Policy: policy.Must(limit)}
	return r.Suggest(t.Context(), open(text), wanted, spoolFile(t), nil)
}

func spoolFile(t testing.TB) io.ReadWriteSeeker {
	t.Helper()
	file := testkit.Must(os.CreateTemp(t.TempDir(), "spool"))(t)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// The suggestion reaches the share, and the next lower limit does not. This is
// so for each kind of limit and any traffic. A bucket does not have every limit.
func TestTheSuggestionIsTheLowestLimit(t *testing.T) {
	texts := []string{"bucket 3/9s burst 6"}
	for _, k := range policy.Kinds() {
		texts = append(texts, policytest.Text(k, "3/9s"))
	}
	for _, text := range texts {
		t.Run(text, rapid.MakeCheck(func(rt *rapid.T) {
			var traffic []moment
			at := time.Duration(0)
			for range rapid.IntRange(1, 60).Draw(rt, "requests") {
				at += time.Duration(rapid.SampledFrom([]int{0, 1, 500, 3000, 9000}).Draw(rt, "later")) * time.Millisecond
				traffic = append(traffic, moment{at, rapid.SampledFrom([]string{"u1", "u2", "u3"}).Draw(rt, "user"), 1})
			}
			lines := record(traffic...)
			share := rapid.SampledFrom([]string{"100%", "60%", "30%"}).Draw(rt, "share")
			got := testkit.Must(suggest(t, text, share, lines))(rt)
			wanted, _ := ParseShare(share)
			enough := func(p policy.Policy) bool {
				_, report := run(t, p, lines)
				return (report.Users-report.HeldUp)*1_000_000 >= int64(wanted)*report.Users
			}
			_, report := run(t, policy.Must(got.Policy), lines)
			untouched := float64((report.Users-report.HeldUp)*10_000/report.Users) / 10_000
			if got.HeldUp != report.HeldUp || got.Users != report.Users || got.Requests != report.Requests || got.Share != untouched || !enough(policy.Must(got.Policy)) {
				rt.Errorf("%+v, but %d of %d users are held up", got, report.HeldUp, report.Users)
			}
			for n := got.Limit - 1; n > 0; n-- {
				if lower, err := WithLimit(policy.Must(text), n); err == nil && enough(lower) {
					rt.Errorf("the suggestion is %s, but %s is enough for %s", got.Policy, lower, share)
				}
			}
		}))
	}
}

// The item of a limit has room for so many request ids. Even the highest limit may hold up too many users.
func TestSuggestRefusesWhatNoLimitReaches(t *testing.T) {
	var many []moment
	for i := range 300 {
		many = append(many, moment{time.Duration(i), "u1", 1})
	}
	const want = "even 35/100ms, the highest limit of this kind, holds up 1 of 1 users"
	if got, err := suggest(t, "10/100ms", "99.9%", record(many...)); err == nil || got != nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%+v, %v, want %s", got, err, want)
	}
}

// An interrupted search returns the best limit so far, or none.
func TestSuggestEndsWithItsContext(t *testing.T) {
	for what, tt := range map[string]struct {
		traffic         func(cancel func()) io.Reader
		reading, trying bool // when it is interrupted
	}{
		"while it reads": {func(func()) io.Reader { return &endless{last: 1 << 40} }, true, false},
		"while it tries": {func(func()) io.Reader { return &endless{last: 1 << 15} }, false, true},
		"before it tries": {func(cancel func()) io.Reader {
			return io.MultiReader(strings.NewReader(record(moment{0, "u1", 5})), atEnd(cancel))
		}, false, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r := &Replay{Activity: "act", Policy: policy.Must("20/1m")}
		if tt.reading {
			r.Progress = func(int64) { cancel() }
		}
		got, err := r.Suggest(ctx, read(tt.traffic(cancel)), 1_000_000, spoolFile(t), func(policy.Policy) { cancel() })
		if enough := got != nil && got.Interrupted && got.HeldUp == 0 && got.Limit >= 24; !errors.Is(err, context.Canceled) || enough != tt.trying || (got != nil) != tt.trying {
			t.Errorf("%s: %+v, %v, want a limit that is enough: %v", what, got, err, tt.trying)
		}
	}
}

func TestParseShare(t *testing.T) {
	for text, want := range map[string]Share{"99.9%": 999_000, "100%": 1_000_000, "0.0001%": 1, "50.25 %": 502_500, "7.%": 70_000} {
		if got, err := ParseShare(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "99.9", "0%", "100.0001%", "-1%", "1.23456%", "1e1%", "99,9%", "0.999"} {
		if got, err := ParseShare(text); err == nil || !strings.Contains(err.Error(), "want a percentage above 0% and up to 100%, such as 99.9%") {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	if got := fmt.Sprint(Share(999_000), Share(1), Share(500_000)); got != "99.9% 0.0001% 50%" {
		t.Error(got)
	}
}

// Each report of a comparison is the one that the limit has alone.
func TestCompare(t *testing.T) {
	text := record(moment{0, "u1", 4}, moment{0, "u2", 9}, moment{time.Minute, "u1", 9})
	limits := []string{"3/1m", "log 3/1h", "reservoir 3/1m ahead 1h", "minute: 5/1m, day: 6/1d"}
	var others []policy.Policy
	for _, limit := range limits[1:] {
		others = append(others, policy.Must(limit))
	}
	r := &Replay{Activity: "act", Policy: policy.Must(limits[0])}
	reports, err := r.Compare(t.Context(), open(text), others...)
	if err != nil || len(reports) != len(limits) {
		t.Fatal(reports, err)
	}
	for i, limit := range limits {
		_, alone := run(t, policy.Must(limit), text)
		testkit.Same(t, limit, summary(alone), summary(reports[i]))
	}
	timelines, err := r.Timelines(t.Context(), open(text), reports, "", others...)
	if err != nil || len(timelines) != len(limits) {
		t.Fatal(timelines, err)
	}
	for i, line := range timelines {
		if line.User != "u1" || line.Policy != limits[i] || line.From != timelines[0].From || line.To != timelines[0].To || line.Requests != 13 || len(line.Panels) == 0 {
			t.Errorf("%s: %+v, want 13 requests of u1 in the period of the first limit", limits[i], line)
		}
	}
}

func summary(r *Report) string {
	return fmt.Sprint(r.Policy, r.From, r.To, r.Requests, r.Allowed, r.Refused, r.Delayed, r.Users, r.HeldUp, r.LongestWaitMs)
}

// atEnd is called when it is read.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// The search relies on this to know which limits it need not try.
func TestHigherLimitsLetMorePassAtOnce(t *testing.T) {
	texts := []string{"bucket 4/60ms burst 3", "bucket 4/60ms burst 9"}
	for _, k := range policy.Kinds() {
		texts = append(texts, policytest.Text(k, "4/1m"), policytest.Text(k, "10/1m"))
		if k.Name != "lockout" { // which has no short window
			texts = append(texts, k.Name+" 4/60ms")
		}
	}
	for _, text := range texts {
		p, gap := policy.Must(text), false
		low := p.Rates()[0]
		for n := int64(1); n <= 100; n++ {
			limit, err := WithLimit(p, n)
			switch {
			case err != nil:
				gap = true
			case limit.Read(0, 0, nil).Limit*low.Limit < n*p.Read(0, 0, nil).Limit:
				t.Errorf("%s lets less pass at once, in proportion, than %s", limit, p)
			case gap && n > low.Window.Milliseconds():
				t.Errorf("%s is above a gap and has more than one action a millisecond", limit)
			}
		}
	}
}

func TestWithLimit(t *testing.T) {
	for _, tt := range []struct {
		p    string
		n    int64
		want string // empty: an error
	}{
		{"10/1m cost 2", 7, "14/1m cost 2"},
		{"log 100/12h", 1, "log 1/12h"},
		{"bucket 10/1m burst 15 keep 1h", 1, "bucket 1/1m burst 2 keep 1h"},
		{"reservoir 10/10s ahead 15m", 7, "reservoir 7/10s ahead 15m"},
		{"writes: 10/1m", 12, "writes: 12/1m"},
		{"bucket 1/1m burst 500000", 3, ""},
		{"10/1m", 0, ""},
		{"10/1m", 1_000_001, ""},
	} {
		got, err := WithLimit(policy.Must(tt.p), tt.n)
		if got.String() != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s with the limit %d is %q, %v, want %q", tt.p, tt.n, got, err, tt.want)
		}
	}
}
