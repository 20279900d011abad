package replay

import (
	"hash/maphash"
	"runtime"
	"sync"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// Users don't share counts. So several shards can decide at the same time, each
// the requests of its own users, in their order.

const (
	batch      = 512 // requests that a shard gets at once
	waiting    = 4   // batches that wait for a shard
	mostShards = 8   // more would wait for the reader of the files
)

// A shard decides the requests of some of the users, under each policy.
type shard struct {
	next     []traffic.Line
	queue    chan []traffic.Line
	deciders []*decider
	reports  []*Report
}

// shards are all shards of a replay.
type shards struct {
	all  []*shard
	seed maphash.Seed
	busy sync.WaitGroup
}

// newShards starts one shard for each processor.
func newShards(activity string, policies []policy.Policy) *shards {
	s := &shards{seed: maphash.MakeSeed()}
	for range min(runtime.GOMAXPROCS(0), mostShards) {
		one := &shard{queue: make(chan []traffic.Line, waiting)}
		for _, p := range policies {
			one.deciders = append(one.deciders, newDecider(p, false))
			one.reports = append(one.reports, newReport(activity, p))
		}
		s.all = append(s.all, one)
		s.busy.Go(one.run)
	}
	return s
}

// add gives a request to the shard of its user.
func (s *shards) add(line traffic.Line) {
	one := s.all[maphash.String(s.seed, line.User)%uint64(len(s.all))]
	one.next = append(one.next, line)
	if len(one.next) == batch {
		one.queue <- one.next
		one.next = make([]traffic.Line, 0, batch)
	}
}

// end waits until all requests are decided, and returns a report for each policy.
func (s *shards) end() []*Report {
	for _, one := range s.all {
		one.queue <- one.next
		close(one.queue)
	}
	s.busy.Wait()
	reports := s.all[0].reports
	for _, one := range s.all[1:] {
		for i, r := range one.reports {
			reports[i].join(r)
		}
	}
	return reports
}

// run decides until the queue is closed.
func (s *shard) run() {
	for lines := range s.queue {
		for _, line := range lines {
			for i, d := range s.deciders {
				s.reports[i].count(line, d.check(line))
			}
		}
	}
}
