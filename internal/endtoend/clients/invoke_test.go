package clients_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

func TestEveryClientInvokesEveryFunction(t *testing.T) {
	testkit.Clients.Need(t)
	calls := []call{{"posts-guard", json.RawMessage(`{"misspelt":1}`)}, {"pots-guard", json.RawMessage(`{}`)}, {"cleanup", nil}}
	want := []string{`Unhandled{"errorMessage":"event has the unknown field`, "ResourceNotFoundException", `{"scanned":`} // as outcome.String begins
	for _, g := range cricket.All {
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
			for i, o := range invoke(t, serve(t), calls) {
				if !strings.HasPrefix(o.String(), want[i]) {
					t.Errorf("%s of %s: %v, want %s", calls[i].Event, calls[i].Function, o, want[i])
				}
			}
		})
	}
}
