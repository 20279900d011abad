package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/table"
)

// canary is a user id that no error may contain.
const canary = "canary-user-4711"

// A deletion is a way to delete.
type deletion func(*DynamoDB, context.Context, Sweep) (Swept, error)

var runs = map[string]deletion{
	"Sweep": (*DynamoDB).Sweep,
	"Erase": func(d *DynamoDB, ctx context.Context, o Sweep) (Swept, error) { return d.Erase(ctx, canary, o) },
}

// eachRun runs a test with each way to delete, in the time of a bubble.
func eachRun(t *testing.T, test func(t *testing.T, name string, run deletion)) {
	t.Helper()
	for name, run := range runs {
		synctest.Test(t, func(t *testing.T) { test(t, name, run) })
	}
}

// holding returns a table with n expired items of one user, all in one part of
// the table. It answers each delete with what deletes returns.
func holding(n int, deletes func(statements []any) string) *DynamoDB {
	var page []string
	for window := range n {
		page = append(page, fmt.Sprintf(`{"userId": {"S": %q}, "activityWindow": {"S": "act#%d"}, "expiresAt": {"N": "1"}}`, canary, window))
	}
	var taken atomic.Bool
	return over(func(op string, body map[string]any) string {
		switch {
		case op == "BatchExecuteStatement":
			return deletes(body["Statements"].([]any))
		case taken.Swap(true):
			return `{}`
		}
		return `{"Items": [` + strings.Join(page, ", ") + `]}`
	})
}

// failed returns the answer to a statement that failed with this code.
func failed(code string) string {
	return fmt.Sprintf(`{"Error": {"Code": %q, "Message": "the item of %s"}}`, code, canary)
}

// The first of two statements is executed, and the second one fails once. Some
// errors are worth another attempt, and an item that was used again is none.
// Any other error ends the run, which still returns what it has deleted.
func TestADeleteStatementFails(t *testing.T) {
	for code, tt := range map[string]struct {
		requests, deleted int
		fails             bool
	}{
		"ThrottlingError":               {requests: 2, deleted: 2},
		"ProvisionedThroughputExceeded": {requests: 2, deleted: 2},
		"RequestLimitExceeded":          {requests: 2, deleted: 2},
		"TransactionConflict":           {requests: 2, deleted: 2},
		"InternalServerError":           {requests: 2, deleted: 2},
		"ConditionalCheckFailed":        {requests: 1, deleted: 1},
		"AccessDenied":                  {requests: 1, deleted: 1, fails: true},
		"ValidationError":               {requests: 1, deleted: 1, fails: true},
	} {
		eachRun(t, func(t *testing.T, name string, run deletion) {
			requests := 0
			table := holding(2, func([]any) string {
				if requests++; requests == 1 {
					return `{"Responses": [{}, ` + failed(code) + `]}`
				}
				return `{"Responses": [{}]}`
			})
			got, err := run(table, t.Context(), Sweep{Now: now})
			want := Swept{Scanned: 2, Stale: 2, Deleted: int64(tt.deleted), Users: 1, Finished: !tt.fails}
			if !cmp.Equal(got, want) || requests != tt.requests || (err != nil) != tt.fails {
				t.Errorf("%s, %s: %+v, %v after %d requests, want %+v after %d", code, name, got, err, requests, want, tt.requests)
			}
			if e, ok := errors.AsType[*ratelimit.StoreError](err); err != nil && (!ok || !strings.Contains(err.Error(), code) || strings.Contains(e.Error(), canary)) {
				t.Errorf("%s, %s: the error is %v, want a StoreError with the code and without the user", code, name, err)
			}
		})
	}
}

// Throttled deletes are sent again after pauses that grow up to 2 s. Without
// pauses, a throttled table would get a flood of requests.
func TestThrottledDeletesArePaced(t *testing.T) {
	const throttles = 20
	eachRun(t, func(t *testing.T, name string, run deletion) {
		began, last := time.Now(), time.Now()
		requests := 0
		table := holding(1, func([]any) string {
			if paused := time.Since(last); paused > 2*time.Second {
				t.Errorf("%s: a pause of %v, want at most 2s", name, paused)
			}
			last = time.Now()
			if requests++; requests <= throttles {
				return `{"Responses": [` + failed("ThrottlingError") + `]}`
			}
			return `{"Responses": [{}]}`
		})
		got, err := run(table, t.Context(), Sweep{Now: now})
		if err != nil || got.Deleted != 1 || requests != throttles+1 {
			t.Errorf("%s = %+v, %v after %d requests, want it deleted by the last of %d", name, got, err, requests, throttles+1)
		}
		if took := time.Since(began); took < 2*time.Second { // 15.6 s on average
			t.Errorf("%s: %d requests in %v, want pauses", name, requests, took)
		}
	})
}

// A caller who leaves does not wait for the end of a pause, and gets an error.
func TestACallerLeavesWhileDeletesAreThrottled(t *testing.T) {
	eachRun(t, func(t *testing.T, name string, run deletion) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		table := holding(1, func([]any) string { return `{"Responses": [` + failed("ThrottlingError") + `]}` })
		began := time.Now()
		got, err := run(table, ctx, Sweep{Now: now})
		want := Swept{Scanned: 1, Stale: 1, Users: 1}
		if took := time.Since(began); !cmp.Equal(got, want) || !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("%s = %+v, %v after %v, want %+v and an error after 10s", name, got, err, took, want)
		}
	})
}

// The time ends while the first of two batches is on its way.
func TestTheTimeMayEndWithinAPage(t *testing.T) {
	eachRun(t, func(t *testing.T, name string, run deletion) {
		table := holding(30, func(statements []any) string {
			time.Sleep(time.Minute)
			return `{"Responses": [` + strings.Repeat(`{}, `, len(statements)-1) + `{}]}`
		})
		got, err := run(table, t.Context(), Sweep{Now: now, Until: time.Now().Add(time.Minute)})
		want := Swept{Scanned: 30, Stale: 30, Deleted: 25, Users: 1}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s = %+v, %v, want %+v", name, got, err, want)
		}
	})
}

// A dry run reads pages, and there is always another one. It stops in time too.
func TestADryRunStopsInTime(t *testing.T) {
	eachRun(t, func(t *testing.T, name string, run deletion) {
		var pages atomic.Int64
		table := over(func(string, map[string]any) string {
			if pages.Add(1) > 1000 {
				return `{}` // a run that does not stop ends here
			}
			time.Sleep(time.Minute)
			item := `{"userId": {"S": "u1"}, "activityWindow": {"S": "act#7"}}`
			return `{"Items": [` + item + `], "LastEvaluatedKey": ` + item + `}`
		})
		began := time.Now()
		got, err := run(table, t.Context(), Sweep{Now: now, Until: began.Add(90 * time.Second), DryRun: true})
		if took := time.Since(began); err != nil || got.Finished || got.Scanned == 0 || took != 2*time.Minute {
			t.Errorf("%s = %+v, %v after %v, want it unfinished after two pages of a minute", name, got, err, took)
		}
	})
}

// The second page of an erasure can't be read. What it has deleted is in the
// answer.
func TestAnErasureThatFailsReturnsTheWorkDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := 0
		table := over(func(op string, _ map[string]any) string {
			if op == "BatchExecuteStatement" {
				return `{"Responses": [{}]}`
			}
			if pages++; pages > 1 {
				return `{"Items": "none"}`
			}
			item := `{"userId": {"S": "u1"}, "activityWindow": {"S": "act#7"}}`
			return `{"Items": [` + item + `], "LastEvaluatedKey": ` + item + `}`
		})
		got, err := table.Erase(t.Context(), "u1", Sweep{})
		if want := (Swept{Scanned: 1, Stale: 1, Deleted: 1, Users: 1}); err == nil || !cmp.Equal(got, want) {
			t.Errorf("Erase = %+v, %v, want %+v and an error", got, err, want)
		}
	})
}

// A sweep reports all work done so far after each part, one report at a time.
func TestSweepReportsItsProgress(t *testing.T) {
	var reports []int64
	var busy atomic.Int64
	table := over(func(_ string, body map[string]any) string {
		return fmt.Sprintf(`{"Items": [{"userId": {"S": "u%v"}, "activityWindow": {"S": "act#7"}}]}`, body["Segment"])
	})
	_, err := table.Sweep(t.Context(), Sweep{Now: now, Progress: func(soFar Swept) {
		if busy.Add(1) > 1 {
			t.Error("two reports at once")
		}
		time.Sleep(time.Millisecond)
		reports = append(reports, soFar.Scanned)
		busy.Add(-1)
	}})
	if err != nil || len(reports) != Parts {
		t.Fatalf("%d reports, %v, want %d", len(reports), err, Parts)
	}
	for n, scanned := range reports {
		if scanned != int64(n+1) {
			t.Errorf("report %d: %d items, want %d", n, scanned, n+1)
		}
	}
}
