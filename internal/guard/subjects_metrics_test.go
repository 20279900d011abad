package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// refusedBy returns the sums of the metric RefusedBy, by whose limit refused.
func (b *bench) refusedBy() map[string]int64 {
	b.t.Helper()
	b.Metrics.Flush()
	sums := map[string]int64{}
	for line := range strings.Lines(b.lines.String()) {
		l := parse(b.t, []byte(line))
		by, _ := l["LimitedBy"].(string)
		n, _ := l["RefusedBy"].(float64)
		if own := strings.Contains(line, `"Dimensions":[["Guard","Activity","LimitedBy"]]`); own != (by != "") || own != (n > 0) {
			b.t.Errorf("the metric has other dimensions, or others have its dimensions: %s", line)
		}
		if n > 0 {
			sums[by] += int64(n)
		}
	}
	b.lines.Reset()
	return sums
}

// The metrics name whose limit refused: a subject by its name, and the user by the
// activity's. In shadow mode, each counts that would refuse.
func TestTheMetricsNameTheSubjectThatRefuses(t *testing.T) {
	check := func(user, room, tenant string) string {
		return `{"userId":"` + canary + user + `","activity":"write","count":2,"subjects":{"room":"` + canary + room + `","tenant":"` + canary + tenant + `"}}`
	}
	for _, step := range []struct {
		mode   Mode
		checks []string
		want   map[string]int64
	}{
		{Enforce, []string{check("1", "1", "1")}, nil},
		{Enforce, []string{check("1", "1", "1"), check("1", "2", "2")}, map[string]int64{"write": 1}},                                 // 2 of 3, then 2 more
		{Enforce, []string{check("1", "1", "1"), check("2", "1", "1"), check("3", "1", "1")}, map[string]int64{"room": 1}},            // 4 of 4 in the room
		{Shadow, []string{check("1", "1", "1"), check("2", "1", "1"), check("1", "1", "1")}, map[string]int64{"write": 1, "room": 1}}, // both would refuse
		{Shadow, []string{check("1", "1", "1"), check("2", "1", "1"), check("3", "1", "1")}, map[string]int64{"room": 1}},
		{Shadow, []string{check("1", "1", "1"), check("1", "2", "1")}, map[string]int64{"write": 1}},
	} {
		b := newBench(t)
		b.Guard, b.Mode = rooms, step.mode
		for _, event := range step.checks {
			if _, err := b.Invoke(t.Context(), []byte(event)); err != nil {
				t.Fatal(err)
			}
			b.now = b.now.Add(2 * time.Second) // the memory knows no refusal any more
		}
		if got := b.refusedBy(); fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%s, %d checks: %v, want %v", step.mode, len(step.checks), got, step.want)
		}
	}
	// A tenant has two limits. It is counted once, under its own name.
	b := newBench(t)
	b.Guard = rooms
	for i := range 12 {
		user := fmt.Sprint(i)
		if _, err := b.Invoke(t.Context(), []byte(check(user, user, "1"))); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.refusedBy(); len(got) != 1 || got["tenant"] != 2 {
		t.Errorf("20 of 20 of the tenant, and two checks more: %v", got)
	}
	if log := b.log.String(); !strings.Contains(log, `"limitedBy":"tenant.minute"`) {
		t.Errorf("the log of a refusal does not name the limit: %s", log)
	}
	// A status, a release and an activity without subjects have no such metric.
	for _, rest := range []string{`"activity":"write","op":"status","subjects":{"room":"r"}`, `"activity":"plain","count":9`, `"activity":"plain"`} {
		if _, err := b.Invoke(t.Context(), []byte(`{"userId":"`+canary+`1",`+rest+`}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.refusedBy(); len(got) != 0 {
		t.Errorf("%v, want none", got)
	}
}

// A live limit below the count of a check refuses it forever. In shadow mode, that counts.
func TestTheMetricsNameALimitThatWaitingDoesNotHelp(t *testing.T) {
	b, s := newBench(t), &settings{}
	b.Guard = rooms
	b.Live = &live.Follower{Source: s, Guards: limits.Guards{rooms}, Now: func() time.Time { return b.now }}
	s.set(b, live.Settings{Activities: map[string]live.Override{"write": {Mode: "shadow"}, "write/room": {Limit: "1/1m"}}})
	b.Live.Refresh(t.Context(), time.Minute)()
	if _, err := b.Invoke(t.Context(), []byte(`{"userId":"`+canary+`","activity":"write","count":2,"subjects":{"room":"r"}}`)); err != nil {
		t.Fatal(err)
	}
	if got := b.refusedBy(); len(got) != 1 || got["room"] != 1 {
		t.Errorf("%v, want one by the room", got)
	}
}

// Requests counts each request to the table. A refusal by a room costs what policies.md
// says: the user's update, the refusal, and what is given back.
func TestGivingBackIsInTheMetricRequests(t *testing.T) {
	check := func(user, tenant string) string {
		return `{"activity":"write","count":2,"userId":"` + canary + user + `","subjects":{"room":"r","tenant":"` + tenant + `"}}`
	}
	full := []string{check("1", "t1"), check("2", "t1")} // the room
	for name, tt := range map[string]struct {
		mode     Mode
		before   []string
		last     string
		outcome  string
		requests float64
	}{
		"counted":                        {Enforce, nil, check("1", "t1"), "Allowed", 3},
		"refused by the user":            {Enforce, []string{check("1", "t1")}, check("1", "t2"), "Refused", 1},
		"refused by the room":            {Enforce, full, check("3", "t1"), "Refused", 3},
		"refused by the room, in shadow": {Shadow, full, check("3", "t1"), "Shadowed", 4}, // and the tenant is read
	} {
		b := newBench(t)
		b.Guard, b.Mode = rooms, tt.mode
		var line fields
		for _, event := range append(tt.before, tt.last) {
			b.lines.Reset()
			b.now = b.now.Add(2 * time.Second) // the memory knows no refusal any more
			before := b.store.asked
			if _, err := b.Invoke(t.Context(), []byte(event)); err != nil {
				t.Fatal(err)
			}
			b.Metrics.Flush()
			first, _, _ := strings.Cut(b.lines.String(), "\n")
			if line = parse(t, []byte(first)); line["Requests"] != float64(b.store.asked-before) {
				t.Errorf("%s: %s, and the store was asked %d times", name, first, b.store.asked-before)
			}
		}
		if line[tt.outcome] != 1.0 || line["Requests"] != tt.requests {
			t.Errorf("%s: %v, want %s and %v requests", name, line, tt.outcome, tt.requests)
		}
	}
}
