package outage_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A frozenGuard is the posts-guard's binary. It is frozen after each answer, as on Lambda.
type frozenGuard struct {
	*lambdatest.Instance
	activity string
}

// freeze freezes the instance for so much time that a read of the live limits would end
// by the clock. A transport with a timeout of 10 s would end, too.
func (g *frozenGuard) freeze() error {
	if err := syscall.Kill(g.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(prove.Bound(11*time.Second, 12*time.Second+rand.N(28*time.Second)))
	if err := syscall.Kill(g.PID(), syscall.SIGCONT); err != nil {
		return err
	}
	time.Sleep(prove.Bound(200*time.Millisecond, 0)) // a busy machine takes longer than the 20 ms that a decision waits
	return nil
}

// decide makes a decision, and returns what was in force for it.
func (g *frozenGuard) decide(t *testing.T) (string, error) {
	var a struct {
		Reason string
		Limit  int64
	}
	payload := fmt.Appendf(nil, `{"userId": %q, "activity": %q}`, fmt.Sprint("u", time.Now().UnixNano()), g.activity)
	r, err := g.Do(t.Context(), lambdatest.Invocation{Payload: payload})
	if err == nil {
		err = json.Unmarshal(r.Payload, &a)
	}
	return fmt.Sprint(a.Reason, " ", a.Limit), err
}

// Instances are frozen after each decision, for more than 10 s, while they read the live
// limits: the table takes 300 ms for that, and far less for a decision. Each uses a change
// from its second decision on: a read was due for the decision before it. This holds for a
// limit and for the kill switch.
func TestInstancesThatAreFrozenInEachReadFollow(t *testing.T) {
	prove.Explain(t, "outage")
	t.Parallel()
	endpoint := dynamotest.Endpoint(t)
	proxy, name := dynamotest.NewProxy(t), dynamotest.Table(t)
	proxy.Do(func(op string) dynamotest.Fault {
		if op == "GetItem" {
			time.Sleep(300 * time.Millisecond)
		}
		return dynamotest.Pass
	})
	table := dynamoedit.New(dynamostore.New(dynamotest.Config(endpoint), name).Table())
	set := func(limited, off string, limit string) {
		t.Helper()
		err := liveedit.Edit(t.Context(), table, cricket.All, liveedit.Change{By: "test"}, func(d liveedit.Draft) (liveedit.Draft, error) {
			return d.Set(limited, "", limit, "enforce").Set(off, "", "", "off"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set("create_post", "delete_post", "12/1m")
	guards := make([]*frozenGuard, prove.Bound(6, 20))
	for n := range guards {
		guards[n] = &frozenGuard{startGuard(t, name, proxy.URL(), "DECISION_TIMEOUT=5s").Instance, []string{"create_post", "delete_post"}[n%2]}
		guards[n].Ready(t)
	}
	// Each decides until a read was due, and then once more.
	follow := func(due time.Time, want map[string]string) {
		t.Helper()
		err := each(guards, func(g *frozenGuard) error {
			for {
				looks := time.Now().After(due)
				if _, err := g.decide(t); err != nil {
					return err
				}
				if err := g.freeze(); err != nil {
					return err
				}
				if looks {
					break
				}
			}
			got, err := g.decide(t)
			if err == nil && got != want[g.activity] {
				err = fmt.Errorf("an instance uses %q for %s, want %q\n%s", got, g.activity, want[g.activity], g.Logs())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	follow(time.Time{}, map[string]string{"create_post": "ok 12", "delete_post": "unlimited 0"})
	if prove.Long() {
		set("delete_post", "create_post", "7/1m")
		follow(time.Now().Add(30*time.Second), map[string]string{"create_post": "unlimited 0", "delete_post": "ok 7"})
	}
}
