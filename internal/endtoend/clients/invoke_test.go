package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/limits"
)

func TestEveryClientInvokesEveryFunction(t *testing.T) {
	calls := []call{{"posts-guard", json.RawMessage(`{"misspelt":1}`)}, {"pots-guard", json.RawMessage(`{}`)}, {"cleanup", nil}}
	want := []string{`Unhandled{"errorMessage":"event has the unknown field`, "ResourceNotFoundException", `{"scanned":`} // as outcome.String begins
	for _, g := range limits.All {
		calls, want = append(calls, call{g.Name, nil}), append(want, `{"allowed":true,"reason":"ok",`)
	}
	for i, c := range calls {
		if c.Event == nil {
			sample, err := os.ReadFile(filepath.Join(root, "functions", c.Function, "event.json"))
			if err != nil {
				t.Fatal(err)
			}
			calls[i].Event = sample
		}
	}
	for name, invoke := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, o := range invoke(t, serve(t), 2, calls) {
				if !strings.HasPrefix(o.String(), want[i]) {
					t.Errorf("%s of %s: %v, want %s", calls[i].Event, calls[i].Function, o, want[i])
				}
			}
		})
	}
}

// Each client sends 500 calls of one user, 16 at the same time.
func TestExactlyTheLimitGetsThroughWithEveryClient(t *testing.T) {
	endpoint := serve(t, inTable(t)...)
	for name, invoke := range clients {
		n := 500
		if name == "AWS CLI" { // it needs a process for each call
			n = 16
		}
		t.Run(name, func(t *testing.T) {
			event := `{"userId":"` + rand.Text() + `","activity":"create_post"}`
			windows := map[int64]struct{ calls, allowed int }{} // by windowKey
			alone := 0                                          // decided from memory, because DynamoDB Local did not answer in 5 s
			for _, o := range invoke(t, endpoint, 16, slices.Repeat([]call{{"posts-guard", json.RawMessage(event)}}, n)) {
				var answer struct {
					Allowed   *bool
					Reason    string
					WindowKey int64
				}
				if err := json.Unmarshal(o.Payload, &answer); err != nil || answer.Allowed == nil {
					t.Fatalf("this is not an answer: %v", o)
				}
				w := windows[answer.WindowKey]
				switch w.calls++; {
				case answer.Reason == "unavailable":
					alone++
				case *answer.Allowed:
					w.allowed++
				}
				windows[answer.WindowKey] = w
			}
			if alone > 0 { // too few by the table are then right, too many never
				t.Logf("%d of %d calls were decided from memory: this machine is too busy to judge more", alone, n)
			}
			for key, w := range windows {
				if w.allowed > 10 || w.allowed < min(10, w.calls) && alone == 0 || alone > n/2 {
					t.Errorf("window %d: %d of %d calls allowed by the table, want %d", key, w.allowed, w.calls, min(10, w.calls))
				}
			}
		})
	}
}
