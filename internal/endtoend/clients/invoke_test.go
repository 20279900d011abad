package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	app "github.com/cric-talk/guards/limits"
)

func TestEveryClientInvokesEveryFunction(t *testing.T) {
	type expected struct{ exception, functionError, payload string } // payload is a prefix
	var calls []call
	var wanted []expected
	want := func(function, event string, e expected) {
		calls = append(calls, call{function, json.RawMessage(event)})
		wanted = append(wanted, e)
	}
	answers := map[string]string{"cleanup": `{"scanned":`}
	for _, g := range app.All {
		answers[g.Name] = `{"allowed":true,"reason":"ok",`
	}
	for name, answer := range answers {
		sample, err := os.ReadFile(filepath.Join(root, "functions", name, "event.json"))
		if err != nil {
			t.Fatal(err)
		}
		want(name, string(sample), expected{payload: answer})
	}
	want("posts-guard", `{"misspelt":1}`, expected{functionError: "Unhandled", payload: `{"errorMessage":"event has the unknown field`})
	want("pots-guard", `{}`, expected{exception: "ResourceNotFoundException"})

	for name, invoke := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, o := range invoke(t, serve(t), 2, calls) {
				w := wanted[i]
				if o.Exception != w.exception || o.FunctionError != w.functionError || !strings.HasPrefix(string(o.Payload), w.payload) {
					t.Errorf("%s of %s: %v, want %+v", calls[i].Event, calls[i].Function, o, w)
				}
			}
		})
	}
}

// Each client sends many calls at the same time.
func TestExactlyTheLimitGetsThroughWithEveryClient(t *testing.T) {
	endpoint := serve(t, inTable(t)...)
	for name, invoke := range clients {
		n, guards := 500, app.All
		if name == "AWS CLI" { // it needs a process for each call
			n, guards = 16, []limits.Guard{app.Posts}
		}
		var calls []call
		for _, g := range guards {
			event := `{"userId":"` + rand.Text() + `","activity":"` + limited(g).Name + `"}`
			calls = append(calls, slices.Repeat([]call{{g.Name, json.RawMessage(event)}}, n)...)
		}
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			outcomes := invoke(t, endpoint, 16, calls)
			took := time.Since(began)
			for i, g := range guards {
				t.Run(g.Name, func(t *testing.T) { checkAdmitted(t, limited(g).Limit, outcomes[i*n:(i+1)*n], took) })
			}
		})
	}
}

// limited returns a guard's first activity with a limit.
func limited(g limits.Guard) limits.Activity {
	i := slices.IndexFunc(g.Activities, func(a limits.Activity) bool { return !a.Unlimited })
	return g.Activities[i]
}

// checkAdmitted checks how many calls of a new user the table allowed. took is the time
// from the first call to the last answer. A fixed window allows exactly its limit
// in each window. Other limits allow more while time passes.
func checkAdmitted(t *testing.T, limit policy.Policy, outcomes []outcome, took time.Duration) {
	t.Helper()
	type tally struct{ calls, allowed int64 }
	var all tally
	var places []int64           // of delayed jobs, in Unix milliseconds
	windows := map[int64]tally{} // by windowKey; 0 if the answers have none
	alone := 0                   // decided from memory, because DynamoDB Local did not answer in 5 s
	for _, o := range outcomes {
		var answer struct {
			Allowed            *bool
			Reason             string
			WindowKey, ReadyAt int64
		}
		if err := json.Unmarshal(o.Payload, &answer); err != nil || answer.Allowed == nil {
			t.Fatalf("this is not an answer: %v", o)
		}
		if answer.Reason == "unavailable" {
			alone++
			continue
		}
		w := windows[answer.WindowKey]
		w.calls++
		all.calls++
		if *answer.Allowed {
			w.allowed++
			all.allowed++
		}
		windows[answer.WindowKey] = w
		if answer.ReadyAt > 0 {
			places = append(places, answer.ReadyAt)
		}
	}
	r := limit.Read(0, 0, nil)
	most := r.Limit
	number, _ := limit.Item(time.Now().UnixMilli())
	fixed := number != 0 // each window has an item of its own
	back := int64(float64(most) * float64(took) / float64(r.Window))
	for key, w := range windows {
		if fixed && alone == 0 && w.allowed != min(most, w.calls) || w.allowed > most+back {
			t.Errorf("window %d: %d of %d calls allowed, want %d", key, w.allowed, w.calls, min(most, w.calls))
		}
	}
	if alone > 0 { // too few by the table are then right, too many never
		t.Logf("%d of %d calls were decided from memory: this machine is too busy to judge more", alone, len(outcomes))
		if alone > len(outcomes)/2 {
			t.Errorf("%d of %d calls were decided from memory", alone, len(outcomes))
		}
		return
	}
	for _, readyAt := range places {
		// A call in the last moment of a window can get a place in the next one, which
		// other calls have begun. Then those get one place less at once.
		if windows[readyAt/r.Window.Milliseconds()].allowed > 0 {
			all.allowed++
		}
	}
	if all.allowed < min(most, all.calls) {
		t.Errorf("%d of %d calls allowed, want at least %d", all.allowed, all.calls, min(most, all.calls))
	}
}
