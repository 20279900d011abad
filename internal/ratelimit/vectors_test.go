package ratelimit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
		Kind            string
		Limit, WindowMs int64
	}
	Steps []struct {
		Now     int64
		Count   int64
		Partial bool
		Want    map[string]any
	}
}

// TestVectors runs every file of decisions in testdata/vectors, or in the
// directory that VECTORS names, on every store.
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
						v.run(t, store, "case "+strconv.Itoa(i))
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

func (v *vector) run(t *testing.T, store Store, name string) {
	t.Helper()
	p := v.policy(t)
	c := &clock{}
	l := &Limiter{Store: store, Timeout: 5 * time.Second, Cache: NewCache(10), DenyOutage: true, Now: c.now}
	for i, step := range v.Steps {
		c.Time = time.UnixMilli(step.Now)
		d, err := l.Check(t.Context(), Request{
			UserID: name, Activity: "act", Policy: p,
			Count: max(1, step.Count), Partial: step.Partial, ID: strconv.Itoa(i),
		})
		if err != nil {
			t.Fatalf("%s, step %d: %v", name, i, err)
		}
		got := map[string]any{
			"allowed": d.Allowed, "reason": string(d.Reason), "granted": float64(d.Granted),
			"used": float64(d.Used), "remaining": float64(d.Remaining), "waitTime": float64(d.Wait.Milliseconds()),
			"resetAt": float64(d.ResetAt), "windowKey": float64(d.WindowKey),
		}
		for field, want := range step.Want {
			if got[field] != want {
				t.Fatalf("%s (%+v), step %d: %+v: %s is %v, want %v", name, p, i, step, field, got[field], want)
			}
		}
	}
}

func (v *vector) policy(t *testing.T) (p Policy) {
	t.Helper()
	window := time.Duration(v.Policy.WindowMs) * time.Millisecond
	switch v.Policy.Kind {
	case "fixedWindow":
		p = FixedWindow{Limit: v.Policy.Limit, Window: window}
	default:
		t.Fatalf("no policy is called %q", v.Policy.Kind)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}
