package ratelimit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/dynamotest"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A vector is a policy and what an independent model of it answered, step by
// step, from nothing. Times are Unix milliseconds. Only the fields present in
// want are compared.
type vector struct {
	Policy struct {
		Kind                            string
		Limit, WindowMs, Burst, AheadMs int64
	}
	Steps []vectorStep
}

type vectorStep struct {
	Now     int64
	Count   int64
	Partial bool
	ReadyAt int64
	Want    map[string]any
}

// TestVectors runs every file of decisions in testdata/vectors, or in the
// directory that VECTORS names, on every store: step by step, and with callers
// at once where their order doesn't matter.
func TestVectors(t *testing.T) {
	dir := os.Getenv("VECTORS")
	if dir == "" {
		dir = "testdata/vectors"
	}
	if _, err := os.Stat(dir); err != nil { // go test runs here, not where VECTORS may have been meant
		dir = filepath.Join("../..", dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var vectors []vector
			if err := json.Unmarshal(raw, &vectors); err != nil {
				t.Fatal(err)
			}
			for name, open := range stores {
				t.Run(name, func(t *testing.T) {
					store := open(t)
					for i, v := range vectors {
						v.run(t, store, "case "+strconv.Itoa(i), 1)
						v.run(t, store, "race "+strconv.Itoa(i), 16)
					}
				})
			}
		})
	}
}

// stores opens each kind of store, empty.
var stores = map[string]func(testing.TB) Store{
	"memory": func(testing.TB) Store { return new(memstore.Store) },
	"dynamodb": func(t testing.TB) Store {
		t.Helper()
		return dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	},
}

// run has up to so many callers ask at once: for the same, at the same time,
// all or nothing, so that their order doesn't matter.
func (v *vector) run(t *testing.T, store Store, user string, callers int) {
	t.Helper()
	p := v.policy(t)
	c := &clock{}
	l := &Limiter{Store: store, Timeout: 20 * time.Second, Cache: NewCache(10), DenyOutage: true, Now: c.now}
	for first := 0; first < len(v.Steps); {
		together := v.Steps[first : first+1]
		for next := first + 1; next < len(v.Steps) && len(together) < callers && v.Steps[first].alike(v.Steps[next]); next++ {
			together = v.Steps[first : next+1]
		}
		c.Time = time.UnixMilli(together[0].Now)
		got := make([]map[string]any, len(together))
		var wg sync.WaitGroup
		for i, step := range together {
			wg.Go(func() {
				d, err := l.Check(t.Context(), Request{
					UserID: user, Activity: "act", Policy: p,
					Count: max(1, step.Count), Partial: step.Partial, ReadyAt: step.ReadyAt, ID: strconv.Itoa(first + i),
				})
				if err != nil {
					t.Errorf("%s, step %d: %v", user, first+i, err)
				}
				got[i] = fieldsOf(d)
			})
		}
		wg.Wait()
		for i, step := range together {
			which := slices.IndexFunc(got, func(fields map[string]any) bool { return includes(fields, step.Want) })
			if which < 0 {
				t.Fatalf("%s (%+v), step %d: %+v: of %v none is as wanted", user, p, first+i, step, got)
			}
			got = slices.Delete(got, which, which+1)
		}
		first += len(together)
	}
}

func (s vectorStep) alike(other vectorStep) bool {
	return s.Now == other.Now && s.Count == other.Count && !s.Partial && !other.Partial && s.ReadyAt == other.ReadyAt
}

func fieldsOf(d Decision) map[string]any {
	return map[string]any{
		"allowed": d.Allowed, "reason": string(d.Reason), "granted": float64(d.Granted),
		"used": float64(d.Used), "remaining": float64(d.Remaining), "waitTime": float64(d.Wait.Milliseconds()),
		"resetAt": float64(d.ResetAt), "windowKey": float64(d.WindowKey),
		"readyAt": float64(d.ReadyAt), "enqueued": float64(d.Enqueued),
	}
}

func includes(got, want map[string]any) bool {
	for field, v := range want {
		if got[field] != v {
			return false
		}
	}
	return true
}

func (v *vector) policy(t *testing.T) (p Policy) {
	t.Helper()
	window := time.Duration(v.Policy.WindowMs) * time.Millisecond
	switch v.Policy.Kind {
	case "fixedWindow":
		p = FixedWindow{Limit: v.Policy.Limit, Window: window}
	case "tokenBucket":
		p = TokenBucket{Limit: v.Policy.Limit, Window: window, Burst: v.Policy.Burst}
	case "slidingLog":
		p = SlidingLog{Limit: v.Policy.Limit, Window: window}
	case "slidingWindow":
		p = SlidingWindow{Limit: v.Policy.Limit, Window: window}
	case "reservoir":
		p = Reservoir{Limit: v.Policy.Limit, Window: window, Ahead: time.Duration(v.Policy.AheadMs) * time.Millisecond}
	default:
		t.Fatalf("no policy is called %q", v.Policy.Kind)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}
