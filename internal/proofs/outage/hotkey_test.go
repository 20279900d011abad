package outage_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// For an hour, the table throttles one key. It decides all others, at once.
func hotKey(t *testing.T, figures *figures) {
	prove.Progress("outage: one throttled key")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one throttled key", 1, 1, "10/1m", "100/1h", "bucket 10/1m burst 15", "log 100/12h", "sliding 50/1h")
		in, hot := w.instances[0], w.users[0].name
		w.run(10*time.Second, w.users)
		in.network.useFor(func(k ratelimit.Key) way {
			if k.UserID == hot {
				return throttled
			}
			return healthy
		})
		began := time.Now()
		w.run(prove.Bound(3*time.Minute, time.Hour), w.users)
		w.use(healthy)
		ended := time.Now()
		w.run(time.Minute, w.users)
		w.keepPromise()

		var ofHot []record
		var busy, others summary
		table := 0
		for _, r := range in.records {
			during := !r.start.Before(began) && r.start.Before(ended)
			switch {
			case r.user == hot:
				ofHot = append(ofHot, r)
				if during {
					busy.add(r)
				}
			case r.outage || r.wait() > time.Duration(2*r.requests)*latency:
				t.Errorf("another key at %s: from memory: %v, waited %v for %d requests, want the table at once", clock(r.start), r.outage, r.wait(), r.requests)
			case during:
				others.add(r)
				if r.requests > 0 {
					table++
				}
			}
		}
		c := circuit{report: reportTo(t, "the throttled key")}
		c.follow(ofHot)
		if c.openers != 1 || c.probes == 0 {
			t.Errorf("%d decisions opened the circuit of the throttled key and %d probed it, want 1 and some", c.openers, c.probes)
		}
		figures.hotKey = append(figures.hotKey,
			busy.hotCells("simulated: the throttled key", 0, duration(w.back(ofHot, ended))),
			others.hotCells("simulated: 9 other keys", table, "it always did"))
	})
}

func (s *summary) add(r record) {
	s.decisions++
	s.requests += r.requests
	s.waited += r.wait()
	s.worst = max(s.worst, r.wait())
}

var hotKeyHead = []string{"keys", "decisions", "asked the table and were answered", "mean wait", "worst wait", "requests per decision", "table decides again after"}

func (s *summary) hotCells(name string, table int, again string) []string {
	return []string{
		name, fmt.Sprint(s.decisions), fmt.Sprint(table), duration(s.waited / time.Duration(max(1, s.decisions))), duration(s.worst),
		fmt.Sprintf("%.3f", float64(s.requests)/float64(max(1, s.decisions))), again,
	}
}
