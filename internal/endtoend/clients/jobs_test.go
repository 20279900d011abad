package clients_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

const members = "m1 m2 m3 m4 m5 m6 m7 m8 m9 m10 m11 m12"

// Twelve jobs need two windows of 10 s, and no window gets more than ten.
func TestWithoutAQueueAJobWaitsForItsPlace(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	endpoint := newProxy(t, serve(t)).endpoint()
	testkit.Retry(t, func(t testing.TB) { // the program takes a guard that is late for an outage
		run := example(append([]string{"without_queue", rand.Text(), "mod"}, strings.Fields(members)...)...)
		began := time.Now()
		jobs := run(t, endpoint)
		if status := jobs.status(t); status != 0 {
			t.Fatalf("exit status %d", status)
		}
		for member := range strings.FieldsSeq(members) {
			if !strings.Contains(jobs.String(), member+": is mod now\n") {
				t.Errorf("%s has no role:\n%s", member, jobs)
			}
		}
		const window = 10 * time.Second
		if began.Truncate(window).Equal(time.Now().Truncate(window)) {
			t.Error("twelve jobs ran in one window, want at most ten")
		}
	})
}

// guards serve has no queue, so this test brings one.
func TestWithAQueueTheGuardKeepsADelayedJob(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) {
		var mu sync.Mutex
		queued := map[string]bool{}
		jobs := &guard.Handler{
			Guard: cricket.Jobs, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}, Log: slog.New(slog.DiscardHandler),
			Delay: func(_ context.Context, job guard.Job) error {
				mu.Lock()
				defer mu.Unlock()
				queued[string(job.Job)] = true
				return nil
			},
		}
		lambda := httptest.NewServer(&invokeapi.Server{Functions: map[string]invokeapi.Function{
			"jobs-guard": {Handler: jobs, Timeout: 10 * time.Second},
		}})
		t.Cleanup(lambda.Close)

		run := example(append([]string{"with_queue", rand.Text(), "mod"}, strings.Fields(members+" n1 n2 n3 n4 n5 n6 n7 n8 n9 n10")...)...)
		ran := run(t, "AWS_ENDPOINT_URL_LAMBDA="+lambda.URL)
		if status := ran.status(t); status != 0 {
			t.Fatalf("exit status %d", status)
		}
		onQueue := regexp.MustCompile(`(?m)^(\w+): is on the queue`).FindAllStringSubmatch(ran.String(), -1)
		mu.Lock()
		defer mu.Unlock()
		if len(onQueue) == 0 || len(onQueue) != len(queued) {
			t.Errorf("the program prints %d jobs on the queue, which has %v", len(onQueue), queued)
		}
		for _, job := range onQueue {
			if !queued[`{"member": "`+job[1]+`", "role": "mod"}`] {
				t.Errorf("the queue has %v, want the job of %s", queued, job[1])
			}
		}
	})
}
