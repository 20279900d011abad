package ratelimit_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
)

// A vector is a policy and what an independent model of it answered, step by
// step, for an item that starts empty. Times are Unix milliseconds. Only the
// fields that are present in want are compared.
type vector struct {
	Policy struct {
		Kind                                                   string
		Limit, WindowMs, Burst, AheadMs, LockMs, LongestLockMs int64
		Max                                                    int64 // 0: callers give no numbers
	}
	Steps []vectorStep
}

type vectorStep struct {
	Now     int64
	Count   int64
	Partial bool
	ReadyAt int64
	Limit   *int64 // the caller's number; nil: none
	Want    map[string]any
}

// vectorKinds has the file of each kind of policy, its name there, and its text form. In a text form, the
// numbers 1 to 6 are the limit, the window, the burst, ahead, and the first and the longest lock.
var vectorKinds = []struct{ kind, file, name, text string }{
	{"fixed", "fixed_window", "fixedWindow", "%[1]d/%[2]dms"},
	{"bucket", "token_bucket", "tokenBucket", "bucket %[1]d/%[2]dms burst %[3]d"},
	{"log", "sliding_log", "slidingLog", "log %[1]d/%[2]dms"},
	{"sliding", "sliding_window", "slidingWindow", "sliding %[1]d/%[2]dms"},
	{"reservoir", "reservoir", "reservoir", "reservoir %[1]d/%[2]dms ahead %[4]dms"},
	{"lockout", "lockout", "lockout", "lockout %[1]d/%[2]dms for %[5]dms to %[6]dms"},
}

// Every kind of policy has vectors of its own.
func TestEveryKindHasVectors(t *testing.T) {
	for _, k := range policy.Kinds() {
		found := false
		for _, v := range vectorKinds {
			if v.kind != k.Name {
				continue
			}
			found = true
			for i, got := range readVectors(t, filepath.Join("testdata/vectors", v.file+".json")) {
				if p := got.policy(t); p.Rates()[0].Kind != k.Name || len(got.Steps) == 0 {
					t.Errorf("%s: case %d is %v with %d steps, want steps of a %s", v.file, i, p, len(got.Steps), k.Name)
				}
			}
		}
		if !found {
			t.Errorf("the kind %s has no vectors: add a file and a row to vectorKinds", k.Name)
		}
	}
}

// TestVectors runs every file of testdata/vectors, or of the directory in VECTORS,
// and of their folders, on every store. It runs each case of one policy step by step,
// and once more with concurrent callers for those steps whose order does not matter.
func TestVectors(t *testing.T) {
	dir := os.Getenv("VECTORS")
	if dir == "" {
		dir = "testdata/vectors"
	}
	if _, err := os.Stat(dir); err != nil { // perhaps it is relative to the module's root
		dir = filepath.Join("../..", dir)
	}
	ran := 0
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".json" || d.IsDir() {
			return err
		}
		ran++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { runFile(t, file) })
		return nil
	})
	if err != nil || ran == 0 {
		t.Fatalf("no vectors in %s: %v", dir, err)
	}
}

// runFile runs the cases of a file. Their form shows what they are about.
func runFile(t *testing.T, file string) {
	var forms []map[string]any
	read(t, file, &forms)
	if len(forms) == 0 {
		t.Fatalf("%s has no case", file)
	}
	_, text := forms[0]["policy"].(string)
	switch {
	case forms[0]["lockout"] != nil:
		var cases []lockoutVector
		read(t, file, &cases)
		onEachStore(t, func(t *testing.T, store Store) { runEach(t, "lockout", cases, store) })
	case forms[0]["group"] != nil:
		var cases []groupVector
		read(t, file, &cases)
		onEachStore(t, func(t *testing.T, store Store) { runEach(t, "group", cases, store) })
	case forms[0]["slots"] != nil:
		var cases []slotVector
		read(t, file, &cases)
		onEachStore(t, func(t *testing.T, store Store) { runEach(t, "slots", cases, store) })
	case text:
		t.Skip("package policy runs the vectors of calendars")
	default:
		vectors := readVectors(t, file)
		onEachStore(t, func(t *testing.T, store Store) {
			for i, v := range vectors[:repeats(len(vectors))] {
				v.run(t, store, "case "+strconv.Itoa(i), 1)
				v.run(t, store, "race "+strconv.Itoa(i), 16)
			}
		})
	}
}

func readVectors(t *testing.T, file string) (vectors []vector) {
	t.Helper()
	read(t, file, &vectors)
	return vectors
}

// read reads a file of JSON into v.
func read(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatal(file, err)
	}
}

// run sends the steps to one limiter. Up to so many callers send alike steps of
// the same moment at once.
func (v *vector) run(t *testing.T, store Store, user string, callers int) {
	t.Helper()
	p := v.policy(t)
	l, c := instance(store)
	for first := 0; first < len(v.Steps); {
		together := v.Steps[first : first+1]
		for next := first + 1; next < len(v.Steps) && len(together) < callers && v.Steps[first].alike(v.Steps[next]); next++ {
			together = v.Steps[first : next+1]
		}
		c.unix.Store(time.UnixMilli(together[0].Now).UnixNano())
		got := make([]map[string]any, len(together))
		var wg sync.WaitGroup
		for i, step := range together {
			wg.Go(func() {
				d, err := l.Check(t.Context(), Request{
					UserID: user, Activity: "act", Policy: step.policy(p),
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
				t.Fatalf("%s (%v), step %d: %+v: none of %v is as wanted", user, p, first+i, step, got)
			}
			got = slices.Delete(got, which, which+1)
		}
		first += len(together)
		if len(together) > 1 { // the answers can come in another order than the updates, and memory has the last answer
			mustDo(t, l, Status, Request{UserID: user, Activity: "act", Policy: p, Count: 1, ID: "status"})
		}
	}
}

// policy returns p with the number of the step.
func (s vectorStep) policy(p policy.Policy) policy.Policy {
	if s.Limit == nil {
		return p
	}
	return p.With(func(string) (int64, bool) { return *s.Limit, true })
}

// alike reports whether the two steps can be answered in any order.
func (s vectorStep) alike(other vectorStep) bool {
	return s.Now == other.Now && s.Count == other.Count && !s.Partial && !other.Partial && s.ReadyAt == other.ReadyAt && s.Limit == nil && other.Limit == nil
}

func fieldsOf(d Decision) map[string]any {
	return map[string]any{
		"allowed": d.Allowed, "reason": string(d.Reason), "granted": float64(d.Granted),
		"used": float64(d.Used), "remaining": float64(d.Remaining), "waitTime": float64(d.Wait.Milliseconds()),
		"resetAt": float64(d.ResetAt), "windowKey": float64(d.WindowKey),
		"readyAt": float64(d.ReadyAt), "enqueued": float64(d.Waiting), "locked": d.Locked, "crossed": float64(d.Crossed),
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

func (v *vector) policy(t *testing.T) policy.Policy {
	t.Helper()
	for _, k := range vectorKinds {
		if k.name != v.Policy.Kind {
			continue
		}
		text := fmt.Sprintf(k.text, v.Policy.Limit, v.Policy.WindowMs, v.Policy.Burst, v.Policy.AheadMs, v.Policy.LockMs, v.Policy.LongestLockMs)
		if v.Policy.Max > 0 {
			text += fmt.Sprintf(" max %d", v.Policy.Max)
		}
		p, err := policy.Parse(text)
		testkit.OK(t, err)
		return p
	}
	t.Fatalf("no kind of policy is named %q in the vectors", v.Policy.Kind)
	return policy.Policy{}
}
