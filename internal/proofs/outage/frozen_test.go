package outage_test

import (
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// After each answer, an instance is frozen, as on Lambda. Its table comes back
// and answers after 400 ms, which a decision may wait for and a probe may not.
// Still, the table decides again: the answer to a probe comes while the instance
// is frozen, and is read at the next invocation.
func TestAFrozenInstanceReturnsToASlowTable(t *testing.T) {
	prove.Explain(t, "outage")
	t.Parallel()
	dynamotest.Endpoint(t)
	proxy := dynamotest.NewProxy(t)
	g := startGuard(t, dynamotest.Table(t), proxy.URL(), "DECISION_TIMEOUT=2s")
	g.Ready(t)
	proxy.Fail(math.MaxInt, dynamotest.HangBefore)
	if a, err := g.ask(t.Context(), "u1"); err != nil || a.Reason != "unavailable" {
		t.Fatalf("without a table: %+v, %v, want unavailable", a, err)
	}
	proxy.Heal()
	proxy.Do(func(string) dynamotest.Fault { time.Sleep(400 * time.Millisecond); return dynamotest.Pass })
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(g.PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = syscall.Kill(g.PID(), syscall.SIGCONT) })
	for back := time.Now(); ; {
		signal(syscall.SIGSTOP)
		time.Sleep(time.Second)
		signal(syscall.SIGCONT)
		a, err := g.ask(t.Context(), "u1")
		if err != nil {
			t.Fatal(err)
		}
		if a.Reason == "ok" {
			return
		}
		if time.Since(back) > 25*time.Second { // 10 s, and some probes more on a machine that is too busy for an answer in time
			t.Fatalf("%v after its return the table does not decide: %+v", time.Since(back), a)
		}
	}
}
