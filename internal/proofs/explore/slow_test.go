package explore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// The explorer sends one request of a decision after the other. What is sent beside a slow one
// needs the time itself. So here a system is one check, what its caller does next, and a fate
// for each of the first requests. Every combination of fates is tried, in virtual time.

// A fate is what happens to a request: when it lands in the table, and when its answer comes,
// after it is sent; 0: never.
type fate struct{ lands, answers time.Duration }

const ms = time.Millisecond

// fates has a table that is quick, slow, or too slow for the decision of a second, and
// requests and answers that are lost. A request can land after the decision has ended.
var fates = []fate{
	{ms, 2 * ms}, {ms, 500 * ms}, {400 * ms, 800 * ms}, {500 * ms, 1200 * ms}, {1300 * ms, 1400 * ms}, {ms, 0}, {450 * ms, 0}, {0, 0},
}

// A slowTable gives each request the next of its fates, and then the first of all fates.
type slowTable struct {
	ratelimit.Store

	began time.Time
	mu    sync.Mutex
	fates []fate
	soon  bool // the answer to the first request comes in time
	sent  int  // writes with an id that are on their way, and that were sent before one was performed
	known bool // one was performed
}

func (s *slowTable) next() fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := fates[0]
	if len(s.fates) > 0 {
		f, s.fates = s.fates[0], s.fates[1:]
	}
	return f
}

// Update implements [ratelimit.Store].
func (s *slowTable) Update(ctx context.Context, w ratelimit.Write) (item ratelimit.Item, done bool, err error) {
	f, counts := s.next(), w.ID != ratelimit.ID{}
	s.mu.Lock()
	s.soon = s.soon || time.Since(s.began) == 0 && 0 < f.answers && f.answers < time.Second
	first := counts && !s.known
	s.mu.Unlock()
	if f.lands > 0 {
		s.add(first, 1)
		time.AfterFunc(f.lands, func() {
			is, performed, _ := s.Store.Update(context.WithoutCancel(ctx), w)
			s.add(first, -1)
			s.mu.Lock()
			defer s.mu.Unlock()
			item, done, s.known = is, performed, s.known || counts
		})
	}
	var answers <-chan time.Time
	if f.answers > 0 {
		answers = time.After(f.answers)
	}
	select {
	case <-answers:
		s.mu.Lock()
		defer s.mu.Unlock()
		return item, done, nil
	case <-ctx.Done():
		return ratelimit.Item{}, false, ctx.Err()
	}
}

// add counts the writes on their way.
func (s *slowTable) add(counts bool, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if counts {
		s.sent += n
	}
}

// nexts are what the caller does after the check.
var nexts = []verb{status, release, repeat}

// Whatever happens to a check and to what is sent beside it, it counts at most once. If it is
// ok, it counts, until it is released; from then on nothing counts it. If its first request is
// answered in time, the table decides.
func TestEveryFateOfASlowRequest(t *testing.T) {
	prove.Explain(t, "explore")
	runs, deep := 0, prove.Bound(testkit.Bound(2, 3), 5)
	for _, text := range []string{"2/1h", "log 2/1h", "bucket 2/1h", "sliding 2/1h"} {
		for _, then := range nexts {
			for n := range pow(len(fates), deep) {
				synctest.Test(t, func(t *testing.T) {
					var list []fate
					for rest := n; len(list) < deep; rest /= len(fates) {
						list = append(list, fates[rest%len(fates)])
					}
					if err := slowly(text, then, list); err != nil {
						t.Errorf("%s, then %s, fates %v: %v", text, then, list, err)
					}
				})
				if runs++; t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d systems", runs)
}

func pow(base, exponent int) int {
	n := 1
	for range exponent {
		n *= base
	}
	return n
}

// slowly plays one system, and returns what is wrong.
func slowly(text string, then verb, list []fate) error {
	table := &slowTable{Store: new(memstore.Store), fates: list, began: time.Now()}
	l := &ratelimit.Limiter{Store: table, Timeout: time.Second, Memory: ratelimit.NewMemory(1 << 20)}
	r := ratelimit.Request{UserID: users[0], Activity: "act", Policy: policy.Must(text), Count: 1, ID: name(0)}
	ctx := context.Background()
	first, err := l.Check(ctx, r)
	took := time.Since(table.began)
	var said strings.Builder
	fmt.Fprintf(&said, "%s after %d requests and %v, error %v", first.Reason, first.Requests, took, err)
	switch {
	case table.soon && err != nil, took > time.Second, first.Requests > 6:
		return fmt.Errorf("%s, answered in time: %v", said.String(), table.soon)
	case err == nil && first.Reason != ratelimit.OK:
		return fmt.Errorf("%s, want ok", said.String())
	}
	certain, most := 0, 1
	if err == nil {
		certain = 1
	}
	table.fates = nil // what follows has a quick table, on another instance
	other := &ratelimit.Limiter{Store: table, Timeout: time.Second}
	switch {
	case then == release && first.At != 0:
		table.mu.Lock()
		late := table.sent > 0
		table.mu.Unlock()
		r.At = first.At
		if d, err := other.Decide(ctx, ratelimit.Release, r); err != nil {
			return fmt.Errorf("%s; its release: %s, %w", said.String(), d.Reason, err)
		}
		if certain, most = 0, 0; late {
			most = 1 // it arrives only after its release
		}
	case then == repeat:
		d, err := other.Check(ctx, r)
		if err != nil || !d.Allowed {
			return fmt.Errorf("%s; its repeat: %s, %w", said.String(), d.Reason, err)
		}
		certain = 1
	}
	time.Sleep(5 * time.Second) // everything has arrived
	d, err := (&ratelimit.Limiter{Store: table.Store}).Decide(ctx, ratelimit.Status, ratelimit.Request{UserID: users[0], Activity: "act", Policy: r.Policy, Count: 1, ID: "status"})
	if used := int(d.Used); err != nil || used < certain || used > most {
		return fmt.Errorf("%s, then %s: in the end %d are counted, want %d to %d, %w", said.String(), then, used, certain, most, err)
	}
	return nil
}
