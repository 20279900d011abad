package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

const instances = 3

// noon is when worlds begin, in Unix milliseconds. It is far from the end of any
// window of 10, 50 or 100 days, and of a month.
const noon = 1_711_111_000_000

// A rig is one table, and instances that reach it through a proxy. Each has an
// SDK client of its own, as in production.
type rig struct {
	direct *table.DynamoDB
	stores [instances]*dynamostore.Store
}

func newRig(t *testing.T, proxy *dynamotest.Proxy) *rig {
	t.Helper()
	name := dynamotest.Table(t)
	r := &rig{direct: table.New(dynamotest.Client(t, dynamotest.Endpoint(t)), name)}
	for i := range r.stores {
		cfg, err := proxy.Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.stores[i] = dynamostore.New(cfg, name)
	}
	return r
}

// A world is one item, the instances that count in it, and its ledger. Calls
// come one after the other.
type world struct {
	*rig
	ledger

	policy   policy.Policy
	group    bool // two activities count in the item
	user     string
	random   *rand.Rand
	limiters [instances]*ratelimit.Limiter
	receipts []call
	ids      int
	faults   map[dynamotest.Fault]int
	calls    map[ratelimit.Op]int
	trace    []string
}

// A call is a request to one of the instances.
type call struct {
	op       ratelimit.Op
	instance int
	id       string
	n        int64
	partial  bool
	at       int64 // release, renew: the receipt
	timed    bool  // the instance times its attempts, so a slow machine can lose any answer
}

func (r *rig) world(text, user string, seed uint64) *world {
	w := &world{
		rig: r, policy: policy.Must(text), user: user, random: rand.New(rand.NewPCG(seed, 5)),
		faults: map[dynamotest.Fault]int{}, calls: map[ratelimit.Op]int{},
	}
	w.group = w.policy.Named() && w.random.IntN(2) == 0
	w.ledger = newLedger(w.policy, noon+w.random.Int64N(1_000_000))
	for i := range w.limiters {
		w.cold(i)
	}
	return w
}

// newLedger reads the limits of a policy.
func newLedger(p policy.Policy, now int64) ledger {
	l := ledger{now: now, counted: map[string]entry{}, given: map[string]bool{}, freed: map[int]int64{}, alone: map[int]map[string]int64{}, found: map[word][]string{}}
	for _, r := range p.Rates() {
		m := limit{most: r.Actions(), each: r.Actions(), window: r.Window.Milliseconds()}
		switch r.Kind {
		case "bucket":
			m.most = r.Burst
		case "reservoir":
			m.places = true
			m.most *= 1 + (now+r.Ahead.Milliseconds())/m.window - now/m.window
		}
		l.limits = append(l.limits, m)
	}
	return l
}

// cold replaces an instance by a new one, which knows nothing. Some instances
// time their attempts as production does.
func (w *world) cold(i int) {
	w.limiters[i] = &ratelimit.Limiter{
		Store: w.stores[i], Memory: ratelimit.NewMemory(1 << 20), Now: func() time.Time { return time.UnixMilli(w.now) },
	}
	delete(w.alone, i)
	if w.random.IntN(40) == 0 {
		w.limiters[i].Timeout = 100 * time.Millisecond
		return
	}
	w.limiters[i].NewBudget = func() ratelimit.Budget { return new(dynamotest.Budget) }
}

// step sends one call with faults, and compares its answer with the item.
func (w *world) step(ctx context.Context, c call, faults []dynamotest.Fault, attempts int) error {
	w.now += w.random.Int64N(3) * 550 // all calls together take less than the 18 s that ids are remembered
	plan := &dynamotest.Plan{Faults: faults, Patience: time.Millisecond, Attempts: attempts}
	if c.timed = w.limiters[c.instance].Timeout > 0; c.timed {
		plan.Patience = 0
	}
	d, err := w.send(plan.In(ctx), c)
	sent := plan.Sent()
	unsure, applied := c.timed, c.timed
	for _, a := range sent {
		if a.Fault != dynamotest.Pass {
			w.faults[a.Fault]++
		}
		if a.Op != "GetItem" && !a.Probes() && a.Fault.Unknown() {
			unsure, applied = true, applied || a.Fault.Applied()
		}
	}
	w.calls[c.op]++
	after, lookErr := look(ctx, w.direct, w.user, w.policy, w.now)
	if lookErr != nil {
		return lookErr
	}
	w.trace = append(w.trace, fmt.Sprintf("%+v, faults %q of %d: %s granted %d used %d receipt %d readyAt %d, %v; stored %+v",
		c, faultsOf(sent), attempts, d.Reason, d.Granted, d.Used, d.At, d.ReadyAt, err, after))
	w.attempts(c, sent, attempts, err != nil || d.Outage != nil)
	if err != nil || d.Outage != nil {
		w.withoutTable(&c, d)
		if e, known := w.counted[c.id]; c.op == ratelimit.Renew && applied && known && c.at == e.at {
			w.renewed(&c)
		}
		if applied {
			w.resolve(&c, after)
		}
		if w.random.IntN(4) > 0 {
			w.cold(c.instance)
		}
	} else {
		w.answer(&c, d, unsure)
		if c.op == ratelimit.Check && d.At != 0 && d.Reason == ratelimit.OK {
			c.at, c.n = d.At, d.Granted
			w.receipts = append(w.receipts, c)
		}
	}
	if c.op == ratelimit.Reset { // the item does not keep receipts, so an older one could give back what is counted later
		for i := range w.receipts {
			w.receipts[i].at = 0
		}
	}
	w.compare(after, &c)
	return nil
}

// attempts requires that each error is followed by another attempt exactly if
// another attempt can help. A probe is sent once.
func (w *world) attempts(c call, sent []*dynamotest.Attempt, attempts int, outage bool) {
	failed := 0
	for i, a := range sent {
		last := i == len(sent)-1
		rejected := slices.Contains([]dynamotest.Fault{dynamotest.AccessDenied, dynamotest.BadCredentials, dynamotest.ExpiredCredentials}, a.Fault)
		failing := a.Fault != dynamotest.Pass && a.Fault != dynamotest.BadChecksum
		over := rejected || a.Op == "DeleteItem" && a.Fault.Unknown() || failing && a.Probes()
		if failing {
			failed++
		}
		switch {
		case c.timed:
		case over && !last:
			w.report(lost, "the request is sent again after %q", a.Fault)
		case last && !over && failed > 0 && outage && failed < attempts:
			w.report(under, "the call ends after %d of %d attempts", failed, attempts)
		case last && outage && failed == 0:
			w.report(under, "the table answers, and the call ends as an outage")
		}
	}
}

func faultsOf(sent []*dynamotest.Attempt) (list []string) {
	for _, a := range sent {
		list = append(list, string(a.Fault))
	}
	return list
}

// text returns what happened, for a report.
func (w *world) text() string {
	return w.policy.String() + "\n" + strings.Join(w.trace, "\n")
}
