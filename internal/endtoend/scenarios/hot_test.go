package scenarios_test

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A fleet is several instances of hot-guard and their table.
type fleet struct {
	proxy     *dynamotest.Proxy
	instances []*lambdatest.Instance
}

func newFleet(t *testing.T, instances int) *fleet {
	t.Helper()
	f := &fleet{proxy: dynamotest.NewProxy(t)}
	binary, table := lambdatest.Build(t, "./internal/endtoend/scenarios/testdata/hot-guard"), dynamotest.Table(t)
	for range instances {
		i := lambdatest.Start(t, binary, "AWS_ENDPOINT_URL_DYNAMODB="+f.proxy.URL(), "DECISION_TIMEOUT=5s", "TABLE_NAME="+table)
		i.Ready(t)
		f.instances = append(f.instances, i)
	}
	return f
}

// A hotAnswer is what the tests read of an answer.
type hotAnswer struct {
	Allowed bool
	Reason  string
}

// ask lets every instance decide event(n) for n from 0, at most pace a second (0: as fast as
// they can), until the end. It passes each answer to got, one at a time. It returns the
// number of decisions and the write units that one of them cost. With fewer decisions than
// least, the machine was too busy to judge, and the test is skipped.
func (f *fleet) ask(t *testing.T, pace int, lasts time.Duration, least int, event func(n int) string, got func(event string, a hotAnswer)) (decisions int, each float64) {
	t.Helper()
	if long() && pace > 0 { // in one minute of the clock
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
	}
	begun := time.Now()
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, i := range f.instances {
		wg.Go(func() {
			for {
				n := int(next.Add(1) - 1)
				if pace > 0 {
					time.Sleep(time.Until(begun.Add(time.Duration(n) * time.Second / time.Duration(pace))))
				}
				if time.Since(begun) >= lasts {
					return
				}
				var a hotAnswer
				r, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(event(n))})
				if err == nil {
					err = json.Unmarshal(r.Payload, &a)
				}
				if err != nil || r.ErrorType != "" || a.Reason == "unavailable" {
					t.Errorf("%s: %s, %v", event(n), r, err)
					return
				}
				mu.Lock()
				decisions++
				got(event(n), a)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	each = f.proxy.WriteUnits() / float64(decisions)
	t.Logf("%d decisions in %v: %.3f write units each; requests: %v", decisions, lasts, each, f.proxy.Counts())
	if decisions < least && !long() {
		t.Skipf("this machine is too busy to judge: %d decisions, and the test needs %d", decisions, least)
	}
	return decisions, each
}

// long reports whether the variable HOT asks for the long bounds.
func long() bool { return os.Getenv("HOT") != "" }

// Four instances of the deployed binary decide about one key. In a minute at 100 decisions
// a second (HOT=1), or in three seconds as fast as they can, a decision costs at most a
// tenth of a write unit.
func TestAHotKeyCostsLittle(t *testing.T) {
	testkit.Clients.Need(t)
	f := newFleet(t, 4)
	pace, lasts, least := 0, 3*time.Second, 2000
	if long() {
		pace, lasts, least = 100, time.Minute, 5000
	}
	decisions, each := f.ask(t, pace, lasts, least, func(int) string { return `{"userId":"u1","activity":"call"}` }, func(_ string, a hotAnswer) {
		if !a.Allowed {
			t.Error("a decision is refused")
		}
	})
	if each > 0.1 || decisions < least {
		t.Errorf("%d decisions cost %.3f write units each, want at least %d and at most 0.1", decisions, each, least)
	}
}

// Three hundred users write 200 messages a second in one room, whose limit is prepaid. In a
// minute (HOT=1) each of ten instances is exact for each user, and a decision costs 1.1
// write units. In four seconds a user can't reach the limit, and the room's key is hot for
// half of the time.
func TestARoomCanBePrepaid(t *testing.T) {
	testkit.Clients.Need(t)
	f := newFleet(t, 10)
	lasts, most := 4*time.Second, 1.5
	if long() {
		lasts, most = 59*time.Second, 1.1
	}
	admitted, refused := map[string]int{}, map[string]int{}
	_, each := f.ask(t, 200, lasts, 700, func(n int) string {
		user := 6 + n%294
		if n%15 == 0 { // one message in 15 is of one of six users, who write two a second
			user = n / 15 % 6
		}
		return fmt.Sprintf(`{"userId":"u%d","activity":"write","subjects":{"room":"r1"}}`, user)
	}, func(event string, a hotAnswer) {
		if a.Allowed {
			admitted[event]++
		} else {
			refused[event]++
		}
	})
	highest := 0
	for event, n := range admitted {
		if highest = max(highest, n); n > 60 || n < 60 && refused[event] > 0 {
			t.Errorf("%s: %d are admitted and %d refused, want 60 before the first refusal", event, n, refused[event])
		}
	}
	t.Logf("at most %d admitted for one user, %d users refused", highest, len(refused))
	if each > most || long() && (highest < 60 || len(refused) == 0) {
		t.Errorf("a decision costs %.2f write units, and a user gets %d, want at most %.1f and 60", each, highest, most)
	}
}
