package delayed_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
)

// The document shows events, each with its answer below it. Twelve jobs of the
// group are counted before these events.
func TestExamplesInTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/delayed-jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for _, found := range regexp.MustCompile("(?s)```json\n(.*?)\n```").FindAllSubmatch(document, -1) {
		examples = append(examples, string(found[1]))
	}
	if len(examples) != 9 {
		t.Fatalf("%d examples, want 9", len(examples))
	}
	b := newBench(t)
	var queued string
	b.Guard.Delay = func(_ context.Context, job guard.Job) (err error) {
		queued, err = Body(job)
		return err
	}
	for i := range 12 {
		if _, err := b.Guard.Decide(t.Context(), guard.Request{UserID: "server1", Activity: "update_member_role", RequestID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	b.answers(4*time.Second, examples[0], examples[1])
	if diff := cmp.Diff(examples[2], queued); diff != "" {
		t.Errorf("the message (-document +real):\n%s", diff)
	}
	for i, at := range []time.Duration{4 * time.Second, 6 * time.Second, 10200 * time.Millisecond} {
		b.answers(at, examples[3+2*i], examples[4+2*i])
	}
}

// answers checks the guard's answer to an event, at a time after the start.
func (b *bench) answers(at time.Duration, event, want string) {
	b.t.Helper()
	b.now = start + at.Milliseconds()
	got, err := b.Guard.Invoke(b.t.Context(), []byte(event))
	if err != nil {
		b.t.Fatalf("%s: %v", event, err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		b.t.Errorf("%s (-document +real):\n%s", event, diff)
	}
}
