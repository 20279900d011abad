package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
)

func TestEveryDecisionIsInTheMetrics(t *testing.T) {
	b := newBench(t)
	for _, event := range []string{`{"count": 7}`, `{}`, `{"op": "status"}`, `{"count": 2}`, `{}`, `{"roles": ["admin"]}`} {
		b.mustAsk(event)
		b.Metrics.Flush()
	}
	b.Mode = live.Shadow
	b.mustAsk(`{}`)
	lines := strings.Split(strings.TrimSpace(b.measured()), "\n")
	for i, want := range []fields{
		{"Allowed": 1.0, "Requests": 1.0},
		{"Allowed": 1.0, "Requests": 1.0, "NearLimit": 1.0, "Crossed80": 1.0},
		{"Requests": 1.0}, // a status
		{"Allowed": 1.0, "Requests": 1.0, "NearLimit": 1.0, "Crossed100": 1.0},
		{"Refused": 1.0, "Requests": 0.0, "CacheRefusals": 1.0},
		{"Bypassed": 1.0},
		{"Shadowed": 1.0, "Requests": 0.0, "CacheRefusals": 1.0},
	} {
		var metrics []any
		got := parse(t, []byte(lines[i]))
		for _, name := range []string{"Allowed", "Refused", "Bypassed", "Shadowed", "Requests", "NearLimit", "Crossed80", "Crossed100", "CacheRefusals"} {
			if _, ok := want[name]; ok {
				metrics = append(metrics, fields{"Name": name, "Unit": "Count"})
			}
		}
		want["Guard"], want["Activity"] = "posts-guard", "create_post"
		want["_aws"] = fields{"Timestamp": float64(startMillis), "CloudWatchMetrics": []any{fields{
			"Namespace": "Guards", "Dimensions": []any{[]any{"Guard", "Activity"}}, "Metrics": metrics,
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
}

// With metrics of the guard, no metric has an activity, and none tells whose limit refused.
func TestMetricsOfAGuardHaveNoActivity(t *testing.T) {
	b := newBench(t)
	b.Guard, b.MeasureGuard = rooms, true
	for range 2 {
		b.answer(`{"userId":"u1","activity":"write","count":2,"subjects":{"room":"r1","tenant":"t1"}}`)
	}
	got := b.measured()
	for _, want := range []string{`"Refused":1`, `"Allowed":1`, `"Dimensions":[["Guard"]]`} {
		if !strings.Contains(got, want) {
			t.Errorf("the metrics lack %s:\n%s", want, got)
		}
	}
	for _, other := range []string{"Activity", "RefusedBy", "LimitedBy", "write"} {
		if strings.Contains(got, other) {
			t.Errorf("the metrics have %s:\n%s", other, got)
		}
	}
}

// DegradedAlarm counts lines of the log, because metrics can be off. So each decision that
// the metric Degraded counts has one such line.
func TestEachDegradedDecisionHasALineForTheAlarm(t *testing.T) {
	for _, deny := range []bool{false, true} {
		b := newBench(t)
		b.DenyOutage = deny
		b.store.away = errAway
		for i := range 20 {
			_, _ = b.Invoke(t.Context(), fmt.Appendf(nil, `{"userId": "u%d", "activity": "create_post"}`, i%3))
			_, _ = b.Invoke(t.Context(), fmt.Appendf(nil, `{"userId": "u%d", "activity": "create_post", "op": "status"}`, i%3))
			_, _ = b.Invoke(t.Context(), fmt.Appendf(nil, `{"userId": "u%d", "activity": "create_post", "op": "reset"}`, i%3))
		}
		counted := 0.0
		for line := range strings.Lines(b.measured()) {
			n, _ := parse(t, []byte(line))["Degraded"].(float64)
			counted += n
		}
		if lines := strings.Count(b.log.String(), "table unavailable"); counted < 40 || lines != int(counted) {
			t.Errorf("deny %v: %v decisions are counted, and %d have a line", deny, counted, lines)
		}
	}
}

// A renewal that is told that its slot has expired is counted, also in shadow mode. One
// that keeps its slot is not, and neither has another outcome.
func TestExpiredRenewalsAreInTheMetrics(t *testing.T) {
	for _, mode := range []string{live.Enforce, live.Shadow} {
		b := newBench(t)
		b.Mode = mode
		b.Guard.Activities = []limits.Activity{{Name: "create_post", Limit: policy.Must("log 3/10m")}}
		b.mustAsk(`{"requestId": "r1"}`)
		b.mustAsk(fmt.Sprintf(`{"op": "renew", "requestId": "r1", "at": %d}`, startMillis))
		if got := b.measured(); strings.Contains(got, "Expired") {
			t.Errorf("%v: a slot that is kept: %s", mode, got)
		}
		b.mustAsk(fmt.Sprintf(`{"op": "renew", "requestId": "r2", "at": %d}`, startMillis))
		if got := b.measured(); strings.Count(got, `"Expired":1`) != 1 || strings.Contains(got, "Refused") || strings.Contains(got, "Shadowed") {
			t.Errorf("%v: a slot that has expired: %s", mode, got)
		}
	}
}

// A check with a tier that no activity of the page has is counted, and logged once in each minute
// of the clock, without the tier, which may be anything. A tier of another activity is none of that.
func TestAnUnknownTierIsMeasured(t *testing.T) {
	b := newBench(t)
	for _, tiers := range [][]string{nil, {"premium", "burst"}} {
		b.Tiers = tiers
		b.lines.Reset()
		b.log.Reset()
		for _, event := range []string{`{"tier": "premum"}`, `{"tier": "premum"}`, `{"tier": "burst"}`, `{"tier": "premium"}`, `{}`, `{"tier": "premum", "op": "status"}`} {
			b.mustAsk(event)
		}
		counted, logged := strings.Contains(b.measured(), `"UnknownTier":2`), strings.Count(b.log.String(), `"unknown tier"`)
		if counted != (tiers != nil) || logged != len(tiers)/2 || strings.Contains(b.log.String(), "premum") {
			t.Errorf("with the tiers %v: %s\n%s", tiers, &b.lines, &b.log)
		}
	}
	for _, after := range []time.Duration{59 * time.Second, 60 * time.Second} {
		b.now = start.Add(after)
		b.log.Reset()
		b.mustAsk(`{"tier": "premum"}`)
		if logged := strings.Contains(b.log.String(), `"level":"WARN","msg":"unknown tier","activity":"create_post"`); logged != (after == time.Minute) {
			t.Errorf("after %s: %s", after, &b.log)
		}
	}
}

// A line with one count, and one with each count that is usual, are as long as
// operating.md tells.
func TestALineOfMetricsHas250To550Bytes(t *testing.T) {
	b := newBench(t)
	b.mustAsk(`{}`) // the first decision is written at once
	for range 12 {
		b.mustAsk(`{}`)
	}
	for line := range strings.Lines(b.measured()) {
		if len(line) < 250 || len(line) > 550 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
	if !strings.Contains(b.lines.String(), `"NearLimit":3,"Crossed80":1,"Crossed100":1,"Refused":3,"CacheRefusals":3}`) {
		t.Errorf("not each usual count: %s", &b.lines)
	}
}

// NearLimit counts an allowed check if at least 80 % of the limit is used after
// it. If 80 % is not a whole number, it is not rounded down.
func TestNearLimitIsAtLeast80Percent(t *testing.T) {
	for limit := int64(1); limit <= 25; limit++ {
		for used := int64(1); used <= limit; used++ {
			b := newBench(t)
			b.Guard.Activities = slices.Clone(b.Guard.Activities)
			b.Guard.Activities[0].Limit = policy.Must(fmt.Sprintf("%d/1m", limit))
			b.mustAsk(fmt.Sprintf(`{"count": %d}`, used))
			if got, want := strings.Contains(b.measured(), `"NearLimit":1`), used*100 >= limit*80; got != want {
				t.Errorf("%d of %d are used: NearLimit is %v, want %v", used, limit, got, want)
			}
		}
	}
}

// A check can cross several limits. Each of them counts.
func TestEachLimitThatIsCrossedIsInTheMetrics(t *testing.T) {
	for count, want := range map[int]string{
		4: `"Requests":1}`,
		5: `"NearLimit":1,"Crossed80":1}`,
		6: `"NearLimit":1,"Crossed80":1,"Crossed100":1}`,
	} {
		b := newBench(t)
		b.Guard = limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{
			{Name: "a", Limit: policy.Must("minute: 6/1m, hour: log 9/1h, day: 7/1d")},
		}}
		b.mustAsk(fmt.Sprintf(`{"activity": "a", "count": %d}`, count))
		if got := strings.TrimSpace(b.measured()); !strings.HasSuffix(got, want) {
			t.Errorf("a check of %d: %s, want it to end with %s", count, got, want)
		}
	}
}

// An error counts its requests, too: those that got no answer.
func TestRequestsOfAnUnavailableDecisionAreInTheMetrics(t *testing.T) {
	for name, event := range map[string]string{
		"a check": `{}`, "a release": `{"op": "release", "at": 1700000040000, "requestId": "r"}`, "a reset": `{"op": "reset"}`,
	} {
		b := newBench(t)
		b.DenyOutage, b.store.away = true, errAway
		if _, err := b.ask(event); err == nil {
			t.Errorf("%s: no error", name)
		}
		if want := fmt.Sprintf(`"Degraded":1,"Requests":%d}`, b.store.asked); b.store.asked == 0 || !strings.Contains(b.lines.String(), want) {
			t.Errorf("%s: %s, want %s", name, &b.lines, want)
		}
	}
}

// refusedBy returns the sums of the metric RefusedBy, by whose limit refused.
func (b *bench) refusedBy() map[string]int64 {
	b.t.Helper()
	sums := map[string]int64{}
	for line := range strings.Lines(b.measured()) {
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
		mode   string
		checks []string
		want   map[string]int64
	}{
		{live.Enforce, []string{check("1", "1", "1")}, nil},
		{live.Enforce, []string{check("1", "1", "1"), check("1", "2", "2")}, map[string]int64{"write": 1}},                                 // 2 of 3, then 2 more
		{live.Enforce, []string{check("1", "1", "1"), check("2", "1", "1"), check("3", "1", "1")}, map[string]int64{"room": 1}},            // 4 of 4 in the room
		{live.Shadow, []string{check("1", "1", "1"), check("2", "1", "1"), check("1", "1", "1")}, map[string]int64{"write": 1, "room": 1}}, // both would refuse
		{live.Shadow, []string{check("1", "1", "1"), check("2", "1", "1"), check("3", "1", "1")}, map[string]int64{"room": 1}},
		{live.Shadow, []string{check("1", "1", "1"), check("1", "2", "1")}, map[string]int64{"write": 1}},
	} {
		b := newBench(t)
		b.Guard, b.Mode = rooms, step.mode
		for _, event := range step.checks {
			b.answer(event)
			b.now = b.now.Add(2 * time.Second) // the memory knows no refusal any more
		}
		if got := b.refusedBy(); fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%s, %d checks: %v, want %v", step.mode, len(step.checks), got, step.want)
		}
	}
	// A tenant has two limits. It is counted once, under its own name.
	b := newBench(t).guarding(rooms)
	for i := range 12 {
		user := fmt.Sprint(i)
		b.answer(check(user, user, "1"))
	}
	if got := b.refusedBy(); len(got) != 1 || got["tenant"] != 2 {
		t.Errorf("20 of 20 of the tenant, and two checks more: %v", got)
	}
	if log := b.log.String(); !strings.Contains(log, `"limitedBy":"tenant.minute"`) {
		t.Errorf("the log of a refusal does not name the limit: %s", log)
	}
	// A status, a release and an activity without subjects have no such metric.
	for _, rest := range []string{`"activity":"write","op":"status","subjects":{"room":"r"}`, `"activity":"plain","count":9`, `"activity":"plain"`} {
		b.answer(`{"userId":"` + canary + `1",` + rest + `}`)
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
	b.mustAsk(`{"activity":"write","count":2,"subjects":{"room":"r"}}`)
	if got := b.refusedBy(); len(got) != 1 || got["room"] != 1 {
		t.Errorf("%v, want one by the room", got)
	}
}

// For an activity with subjects, RefusedBy counts checks that a number from the caller refuses:
// by the name of the subject, or the activity.
func TestTheMetricsNameANumberThatIsTooLow(t *testing.T) {
	for _, mode := range []string{live.Enforce, live.Shadow} {
		b := newBench(t).guarding(bought)
		b.Mode = mode
		for _, rest := range []string{
			`"limit":{"tenant.minute":0},"subjects":{"tenant":"t1"}`,
			`"limit":{"tenant.minute":3},"subjects":{"tenant":"t1"},"count":4`,
			`"limit":0,"subjects":{"tenant":"t1"}`,
			`"limit":0`, // without a subject
			`"limit":0,"subjects":{"tenant":"t1"},"op":"status"`,
		} {
			b.answer(`{"userId":"` + canary + `","activity":"call",` + rest + `}`)
		}
		if got := b.refusedBy(); len(got) != 2 || got["tenant"] != 2 || got["call"] != 1 {
			t.Errorf("%s: %v, want two by the tenant and one by the activity", mode, got)
		}
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
		mode     string
		before   []string
		last     string
		outcome  string
		requests float64
	}{
		"counted":                        {live.Enforce, nil, check("1", "t1"), "Allowed", 3},
		"refused by the user":            {live.Enforce, []string{check("1", "t1")}, check("1", "t2"), "Refused", 1},
		"refused by the room":            {live.Enforce, full, check("3", "t1"), "Refused", 3},
		"refused by the room, in shadow": {live.Shadow, full, check("3", "t1"), "Shadowed", 4}, // and the tenant is read
	} {
		b := newBench(t)
		b.Guard, b.Mode = rooms, tt.mode
		var line fields
		for _, event := range append(tt.before, tt.last) {
			b.lines.Reset()
			b.now = b.now.Add(2 * time.Second) // the memory knows no refusal any more
			before := b.store.asked
			b.answer(event)
			first, _, _ := strings.Cut(b.measured(), "\n")
			if line = parse(t, []byte(first)); line["Requests"] != float64(b.store.asked-before) {
				t.Errorf("%s: %s, and the store was asked %d times", name, first, b.store.asked-before)
			}
		}
		if line[tt.outcome] != 1.0 || line["Requests"] != tt.requests {
			t.Errorf("%s: %v, want %s and %v requests", name, line, tt.outcome, tt.requests)
		}
	}
}
