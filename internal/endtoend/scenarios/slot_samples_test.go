package scenarios_test

import (
	"fmt"
	"path"
	"path/filepath"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// The examples of slots and of settling run as they stand: first for a user who may, then
// for one whose slots or tokens are used.
func TestSamplesOfSlots(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	for name, sample := range map[string]struct {
		prints string
		left   int64 // what counts in the end for the one who may
		used   string
	}{
		"slots/export":     {"page 1\npage 2\npage 3\n", 0, `{"userId":"u1","activity":"export","count":3}`},
		"reserve/complete": {"1400 tokens\n", 1400, `{"userId":"u1","activity":"complete","count":97000}`},
	} {
		for _, language := range []string{"mjs", "py", "go"} {
			t.Run(path.Base(name)+"."+language, func(t *testing.T) {
				command := append(app(t, language, fileOf(t, filepath.Join(root, "examples", filepath.FromSlash(name+"."+language)))), "u1")
				run := func(t testing.TB, before, prints, asks string) {
					t.Helper()
					y := openYard(t)
					own := y.post("exports-guard", new(post))
					if _, err := own.handler.Invoke(t.Context(), []byte(before)); err != nil {
						t.Fatal(err)
					}
					out := output(t, y.url, command...)
					ops, left := y.asked("exports-guard")
					if got := fmt.Sprint(ops, " ", left); out != prints || got != asks {
						t.Errorf("printed %q after the requests and the rest %q, want %q and %q", out, got, prints, asks)
					}
				}
				testkit.Retry(t, func(t testing.TB) { // the samples have the client's own timeouts
					run(t, `{"userId":"u2","activity":"view"}`, sample.prints, fmt.Sprint("check release ", sample.left))
					run(t, sample.used, "429 "+tooMany+"\n", fmt.Sprint("check ", noRelease))
				})
			})
		}
	}
}
