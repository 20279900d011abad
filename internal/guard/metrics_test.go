package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

func TestEveryDecisionIsInTheMetrics(t *testing.T) {
	b := newBench(t)
	for _, event := range []string{`{"count": 7}`, `{}`, `{"op": "status"}`, `{"count": 2}`, `{}`, `{"roles": ["admin"]}`} {
		b.mustAsk(event)
		b.Metrics.Flush()
	}
	b.Mode = Shadow
	b.mustAsk(`{}`)
	b.Metrics.Flush()
	lines := strings.Split(strings.TrimSpace(b.lines.String()), "\n")
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
		if _, err := b.Invoke(t.Context(), []byte(`{"userId":"u1","activity":"write","count":2,"subjects":{"room":"r1","tenant":"t1"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	b.Metrics.Flush()
	got := b.lines.String()
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
		b.Metrics.Flush()
		counted := 0.0
		for line := range strings.Lines(b.lines.String()) {
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
	for _, mode := range []Mode{Enforce, Shadow} {
		b := newBench(t)
		b.Mode = mode
		b.Guard.Activities = []limits.Activity{{Name: "create_post", Limit: policy.Must("log 3/10m")}}
		b.mustAsk(`{"requestId": "r1"}`)
		b.mustAsk(fmt.Sprintf(`{"op": "renew", "requestId": "r1", "at": %d}`, startMillis))
		b.Metrics.Flush()
		if got := b.lines.String(); strings.Contains(got, "Expired") {
			t.Errorf("%v: a slot that is kept: %s", mode, got)
		}
		b.mustAsk(fmt.Sprintf(`{"op": "renew", "requestId": "r2", "at": %d}`, startMillis))
		b.Metrics.Flush()
		if got := b.lines.String(); strings.Count(got, `"Expired":1`) != 1 || strings.Contains(got, "Refused") || strings.Contains(got, "Shadowed") {
			t.Errorf("%v: a slot that has expired: %s", mode, got)
		}
	}
}

// A check with a tier that no activity of the page has is counted, and logged once a minute,
// without the tier, which may be anything. A tier of another activity is none of that.
func TestAnUnknownTierIsMeasured(t *testing.T) {
	b := newBench(t)
	for _, tiers := range [][]string{nil, {"premium", "burst"}} {
		b.Tiers = tiers
		b.lines.Reset()
		b.log.Reset()
		for _, event := range []string{`{"tier": "premum"}`, `{"tier": "premum"}`, `{"tier": "burst"}`, `{"tier": "premium"}`, `{}`, `{"tier": "premum", "op": "status"}`} {
			b.mustAsk(event)
		}
		b.Metrics.Flush()
		counted, logged := strings.Contains(b.lines.String(), `"UnknownTier":2`), strings.Count(b.log.String(), `"unknown tier"`)
		if counted != (tiers != nil) || logged != len(tiers)/2 || strings.Contains(b.log.String(), "premum") {
			t.Errorf("with the tiers %v: %s\n%s", tiers, &b.lines, &b.log)
		}
	}
	b.now = b.now.Add(time.Minute)
	b.log.Reset()
	if b.mustAsk(`{"tier": "premum"}`); !strings.Contains(b.log.String(), `"level":"WARN","msg":"unknown tier","activity":"create_post"`) {
		t.Errorf("a minute later: %s", &b.log)
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
	b.Metrics.Flush()
	for line := range strings.Lines(b.lines.String()) {
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
			b.Metrics.Flush()
			if got, want := strings.Contains(b.lines.String(), `"NearLimit":1`), used*100 >= limit*80; got != want {
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
		b.Metrics.Flush()
		if got := strings.TrimSpace(b.lines.String()); !strings.HasSuffix(got, want) {
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
