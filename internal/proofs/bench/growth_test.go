//go:build unix

package bench_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// beginning is when simulated time starts: 12 s after a window of a minute began.
var beginning = time.UnixMilli(1_700_000_052_000)

// limiters returns n limiters that share a table of DynamoDB Local, behind a
// proxy that counts. They take the time from now.
func limiters(t *testing.T, n int, now *time.Time) ([]*ratelimit.Limiter, *dynamotest.Proxy) {
	t.Helper()
	p, name := dynamotest.NewProxy(t), dynamotest.Table(t)
	list := make([]*ratelimit.Limiter, n)
	for i := range list {
		list[i] = &ratelimit.Limiter{
			Store: dynamostore.New(dynamotest.Config(p.URL()), name), Memory: ratelimit.NewMemory(ratelimit.DefaultMemory),
			Timeout: 5 * time.Second, Now: func() time.Time { return *now },
		}
	}
	return list, p
}

// check makes one check and fails t if the table did not decide.
func check(t *testing.T, l *ratelimit.Limiter, r ratelimit.Request) (allowed bool) {
	t.Helper()
	d, err := l.Check(t.Context(), r)
	if err != nil || d.Reason == ratelimit.Unavailable {
		t.Fatalf("Check = %+v, %v", d, err)
	}
	return d.Allowed
}

// The write units of a decision grow with the rate on one key, because the item
// has the ids of the last requests.
func TestRates(t *testing.T) {
	rounds(t)
	table := findings.Table{Title: "Write units of a decision on one key, after 30 s at this rate", Head: []string{"decisions a minute", "fixed window", "bucket", "sliding window"}}
	chart := findings.Chart{Name: "rates", Title: "Write units of a decision, fixed window, by decisions a minute on one key"}
	for _, rate := range []int64{60, 200, 600, 1000, 2000, 5000, 10_000, 20_000} {
		row := []string{fmt.Sprint(rate)}
		for i, text := range []string{"%d/1m", "bucket %d/1m", "sliding %d/1m"} {
			units := steady(t, fmt.Sprintf(text, rate), rate)
			row = append(row, fmt.Sprintf("%.1f", units))
			if i == 0 {
				chart.Bars = append(chart.Bars, findings.Bar{Label: fmt.Sprint(rate), Value: units, Text: row[1], Own: true})
			}
		}
		table.Rows = append(table.Rows, row)
	}
	Save(t, "rates", findings.Result{Tables: []findings.Table{table}, Charts: []findings.Chart{chart}})
}

// steady returns the write units of a decision in the fifth of six periods of 7 s.
func steady(t *testing.T, text string, rate int64) float64 {
	t.Helper()
	now := beginning
	list, p := limiters(t, 1, &now)
	pause := time.Minute / time.Duration(rate)
	r := ratelimit.Request{UserID: strings.Repeat("u", 36), Activity: "act", Count: 1, Policy: policy.Must(text)}
	n := 0
	for now.Before(beginning.Add(35 * time.Second)) {
		if now.Before(beginning.Add(28 * time.Second)) {
			p.ResetCounts()
			n = 0
		}
		r.ID = fmt.Sprint(now.UnixNano())
		check(t, list[0], r)
		n++
		now = now.Add(pause)
	}
	return p.WriteUnits() / float64(n)
}

// What decisions cost with more traffic, and with higher limits. The users of an
// app are not equal: one in five makes four of five requests.
func TestLimits(t *testing.T) {
	rounds(t)
	traffic := findings.Table{
		Title: "A minute of traffic of 1,000 users, with 10/1m",
		Head:  []string{"decisions a second", "instances", "refused", "requests for each decision", "write units for each decision"},
	}
	for _, rate := range []int{1, 10, 100, 1000} {
		instances := max(1, rate*6/1000*2) // 6 ms for each, and twice as many as that takes
		traffic.Rows = append(traffic.Rows, append([]string{fmt.Sprint(rate), fmt.Sprint(instances)}, minute(t, "10/1m", rate, instances)...))
	}
	limits := findings.Table{
		Title: "The same minute with 100 decisions a second and other limits",
		Head:  []string{"limit", "refused", "requests for each decision", "write units for each decision"},
	}
	for _, limit := range []string{"10/1m", "100/1m", "1000/1m", "10000/1m", "1000000/1d"} {
		for _, kind := range []string{"", "bucket ", "sliding "} {
			text := kind + limit
			if text == "bucket 1000000/1d" {
				text = "bucket 1000000/100000s" // a bucket's window is a multiple of its limit
			}
			limits.Rows = append(limits.Rows, append([]string{"`" + text + "`"}, minute(t, text, 100, 1)...))
		}
	}
	Save(t, "limits", findings.Result{Tables: []findings.Table{traffic, limits}})
}

// minute simulates a minute of traffic. It returns the share that is refused, and
// the requests and write units of a decision.
func minute(t *testing.T, text string, rate, instances int) []string {
	t.Helper()
	now := beginning
	list, p := limiters(t, instances, &now)
	r := ratelimit.Request{Activity: "act", Count: 1, Policy: policy.Must(text)}
	random, n, refused := rand.New(rand.NewPCG(1, 2)), 60*rate, 0
	for i := range n {
		user := random.IntN(1000)
		if random.IntN(5) > 0 {
			user = random.IntN(200)
		}
		r.UserID, r.ID = fmt.Sprintf("%036d", user), fmt.Sprint(i)
		if !check(t, list[random.IntN(instances)], r) {
			refused++
		}
		now = now.Add(time.Second / time.Duration(rate))
	}
	decisions := float64(n)
	return []string{
		fmt.Sprintf("%.1f %%", 100*float64(refused)/decisions),
		fmt.Sprintf("%.3f", float64(p.Counts()["UpdateItem"]+p.Counts()["GetItem"])/decisions),
		fmt.Sprintf("%.3f", p.WriteUnits()/decisions),
	}
}
