package dynamostore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// operators are what DynamoDB counts in an expression, of which it takes 300.
// The AND of a BETWEEN is none.
var (
	operators = regexp.MustCompile(`<=|>=|\b(BETWEEN|AND|OR|NOT|attribute_not_exists|contains)\b`)
	between   = regexp.MustCompile(`BETWEEN (:v[0-9]+) AND`)
)

// A reader hands requests on, and sees their expressions.
type reader func(condition, update string)

// Do implements the SDK's HTTP client.
func (see reader) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var sent struct{ ConditionExpression, UpdateExpression string }
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	see(sent.ConditionExpression, sent.UpdateExpression)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultClient.Do(r)
}

// Every guard fits one expression, whatever is asked and known, and DynamoDB
// takes it.
func TestOperators(t *testing.T) {
	bucket := func(burst int64) ratelimit.Policy {
		return ratelimit.TokenBucket{Limit: 10, Window: time.Hour, Burst: burst}
	}
	counter := func(limit int64, window time.Duration) ratelimit.Policy {
		return ratelimit.SlidingWindow{Limit: limit, Window: window}
	}
	log := ratelimit.SlidingLog{Limit: 100, Window: time.Hour}
	var eight ratelimit.Several
	for i := range int64(7) {
		eight = append(eight, ratelimit.Named{Name: fmt.Sprint(i), Policy: ratelimit.FixedWindow{Limit: 20 + i, Window: time.Hour}})
	}
	eight = append(eight, ratelimit.Named{Name: "log", Policy: ratelimit.SlidingLog{Limit: 20, Window: time.Hour}})
	for name, tt := range map[string]struct {
		policy ratelimit.Policy
		counts []int64 // asked for, one after the other
		want   int     // operators at most
	}{
		"fixed window":         {ratelimit.FixedWindow{Limit: 10, Window: time.Hour}, []int64{9, 1, 1}, 8},
		"interval":             {bucket(1), []int64{1, 1}, 18},
		"bucket":               {bucket(15), []int64{1, 1, 13, 1}, 18},
		"log, one at a time":   {log, []int64{1, 1, 1}, 18},
		"log, 60 at once":      {log, []int64{60, 40}, 254},
		"log, 61 at once":      {log, []int64{1, 61, 38}, 166},
		"log, all at once":     {log, []int64{100, 1}, 214},
		"counter of 50":        {counter(50, time.Hour), []int64{1, 48, 1, 1}, 224},
		"counter of 65":        {counter(65, time.Hour), []int64{1, 63, 1, 1}, 284},
		"counter of 66":        {counter(66, time.Hour), []int64{1, 64, 1, 1}, 300},
		"counter of a million": {counter(1_000_000, time.Second), []int64{1, 998_000, 1, 1}, 300},
		"reservoir":            {ratelimit.Reservoir{Limit: 2, Window: time.Hour, Ahead: time.Hour}, []int64{1, 1, 1, 1, 1}, 13},
		"eight limits":         {eight, []int64{10, 10, 1}, 82},
	} {
		t.Run(name, func(t *testing.T) {
			worst := 0
			cfg := dynamotest.Config(dynamotest.Endpoint(t))
			cfg.HTTPClient = reader(func(condition, update string) {
				worst = max(worst, len(operators.FindAllString(between.ReplaceAllString(condition, "BETWEEN $1"), -1)))
				if len(condition) > 4096 || len(update) > 4096 {
					t.Errorf("expressions of %d and %d bytes, want at most 4096", len(condition), len(update))
				}
			})
			store := New(cfg, dynamotest.Table(t))
			for _, cache := range []*ratelimit.Cache{nil, ratelimit.NewCache(1)} { // with nothing known, and with all
				l := &ratelimit.Limiter{Store: store, Cache: cache, Timeout: 5 * time.Second, Now: func() time.Time { return start }}
				for i, n := range tt.counts {
					r := request(fmt.Sprintf("%v %d", cache == nil, i))
					r.UserID, r.Policy, r.Count = fmt.Sprint(cache == nil), tt.policy, n
					if _, err := l.Check(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
			}
			if worst > tt.want || worst == 0 {
				t.Errorf("%d operators, want at most %d", worst, tt.want)
			}
			t.Logf("%d operators", worst)
		})
	}
}

// The item of a log of 100 fits one write unit at rest, with names of full
// length. The ids of a burst may cost a second for as long as they are kept.
func TestALogFitsOneWriteUnitAtRest(t *testing.T) {
	l, p := through(t)
	l.Cache = ratelimit.NewCache(1)
	now := start
	l.Now = func() time.Time { return now }
	r := request("")
	r.UserID = "123456789012345678901234567890123456"
	r.Activity = "pin"
	r.Policy = ratelimit.SlidingLog{Limit: 100, Window: 12 * time.Hour}
	for i := range 500 {
		now = now.Add(10 * time.Minute)
		r.ID = fmt.Sprint(i)
		if d, err := l.Check(t.Context(), r); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	if units := p.WriteUnits(); units != 500 {
		t.Errorf("500 pins, one every 10 minutes, cost %v write units, want 500", units)
	}
	now = now.Add(12 * time.Hour)
	p.ResetCounts()
	for i := range 100 { // a burst
		r.ID = fmt.Sprint("b", i)
		if d, err := l.Check(t.Context(), r); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	if units := p.WriteUnits(); units > 200 {
		t.Errorf("a burst of 100 pins costs %v write units, want at most 200", units)
	}
	now = now.Add(13*time.Hour + 2*time.Minute)
	for i := range 2 {
		p.ResetCounts()
		r.ID = fmt.Sprint("c", i)
		if d, err := l.Check(t.Context(), r); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		now = now.Add(20 * time.Second)
	}
	if units := p.WriteUnits(); units != 1 { // the first write after it has dropped the burst's ids
		t.Errorf("a pin after the burst costs %v write units, want 1", units)
	}
}
