package cleanup_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A process runs the cleanup's binary again and again.
type process struct {
	t     testing.TB
	table string
	proxy *dynamotest.Proxy // stands between the binary and the table
	runs  []*run
	late  int // runs in a row that were answered after their deadline
}

// A run is one invocation.
type run struct {
	Answer
	took   time.Duration
	killed bool
	memory []int64 // bytes, many times during the run
}

func (p *process) start() *lambdatest.Instance {
	i := lambdatest.Start(p.t, lambdatest.Build(p.t, "./functions/cleanup"), "TABLE_NAME="+p.table, "AWS_ENDPOINT_URL_DYNAMODB="+p.proxy.URL())
	i.Ready(p.t)
	return i
}

// invoke runs i once. It kills i after some time if that is not 0.
func (p *process) invoke(i *lambdatest.Instance, payload string, deadline, killAfter time.Duration) *run {
	r := &run{}
	type outcome struct {
		lambdatest.Result
		error
	}
	ended := make(chan outcome, 1)
	began := time.Now()
	go func() {
		result, err := i.Do(p.t.Context(), lambdatest.Invocation{Payload: []byte(payload), Timeout: deadline})
		ended <- outcome{result, err}
	}()
	var kill <-chan time.Time
	if killAfter > 0 {
		kill = time.After(killAfter)
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if now, err := i.Memory(); err == nil {
				r.memory = append(r.memory, now)
			} else if runtime.GOOS == "linux" && !r.killed {
				p.t.Error(err)
			}
		case <-kill:
			i.Stop()
			r.killed = true
		case o := <-ended:
			r.took = time.Since(began)
			p.note(r, o.Result, o.error, deadline)
			return r
		}
	}
}

// note takes the answer of a run. One that was killed has none, unless it
// answered just before.
func (p *process) note(r *run, result lambdatest.Result, err error, deadline time.Duration) {
	p.runs = append(p.runs, r)
	switch {
	case err != nil && r.killed:
		return
	case err != nil:
		p.t.Fatal(err)
	}
	r.killed, r.took = false, result.Duration
	if result.ErrorType != "" || json.Unmarshal(result.Payload, &r.Answer) != nil {
		p.t.Fatalf("the run is answered %+v", result)
	}
	if p.late++; r.took <= deadline {
		p.late = 0
	}
	if p.late >= testkit.Tries { // one stall of a busy machine makes one run late
		p.t.Fatalf("%d runs in a row were too late, the last one after %v, want an answer before its deadline of %v", p.late, r.took, deadline)
	}
}

// dryRun counts the items that have expired, with as much time as the template
// allows.
func (p *process) dryRun(stale int) {
	r := p.invoke(p.start(), `{"dryRun": true}`, 5*time.Minute, 0)
	if r.Stale != int64(stale) || !r.Finished {
		p.t.Fatalf("the dry run is %+v, want %d stale items", r.Answer, stale)
	}
	prove.Progress("cleanup: a dry run over %d items took %v", r.Scanned, r.took)
}

// slowly makes each request to the table take longer. A slow delete gives users
// time to act between the scan and the delete.
func (p *process) slowly(scan, del time.Duration) {
	p.proxy.Do(func(op string) dynamotest.Fault {
		if op == "Scan" {
			time.Sleep(scan)
		} else {
			time.Sleep(del)
		}
		return dynamotest.Pass
	})
}

// kill kills some runs, each on a new instance and at a random moment.
func (p *process) kill(times int, longest time.Duration) {
	for killed := 0; killed < times; {
		r := p.invoke(p.start(), `{}`, time.Minute, 1+rand.N(longest))
		if r.killed {
			killed++
		}
		prove.Progress("cleanup: killed %d times, the last time after %v", killed, r.took)
	}
}

// deadline is how long Lambda lets a run take that is not killed. In a short
// test, the runs after the first one get more time.
func deadline() time.Duration { return prove.Bound(2*time.Second, 15*time.Second) }

// finish sweeps until a run says that it is finished. At least one run before
// reaches its deadline.
func (p *process) finish() {
	i, limit, unfinished := p.start(), deadline(), 0
	p.slowly(prove.Bound(100*time.Millisecond, 0), prove.Bound(300*time.Millisecond, 0))
	for range 1000 {
		r := p.invoke(i, `{}`, limit, 0)
		prove.Progress("cleanup: %d deleted in %v, finished: %v", r.Deleted, r.took, r.Finished)
		if r.Finished {
			if unfinished == 0 {
				p.t.Error("no run came to its deadline, want some")
			}
			return
		}
		unfinished++
		if p.late > 0 { // the same again
			continue
		}
		p.slowly(0, prove.Bound(100*time.Millisecond, 0))
		limit = prove.Bound(30*time.Second, limit)
	}
	p.t.Fatal("1,000 runs have not finished the table")
}

// flat returns the most memory in the first and in the last quarter of some
// samples.
func flat(samples []int64) (first, last int64) {
	quarter := (len(samples) + 3) / 4
	for i, n := range samples {
		if i < quarter {
			first = max(first, n)
		}
		if i >= len(samples)-quarter {
			last = max(last, n)
		}
	}
	return first, last
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
