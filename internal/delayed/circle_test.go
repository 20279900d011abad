package delayed_test

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/sqstest"
)

// No window has more jobs than places, and no job is lost. Meanwhile, apps repeat
// their checks, and SQS delivers each message up to four times, early, late and out of
// order. Two instances decide, whose clocks are a second apart.
func TestNoWindowHasMoreJobsThanPlaces(t *testing.T) {
	for kind, tt := range map[string]struct {
		jobs int
		open func(*testing.T) ratelimit.Store
	}{
		"memory": {1000, func(*testing.T) ratelimit.Store { return new(memstore.Store) }},
		"dynamodb": {60, func(t *testing.T) ratelimit.Store {
			return dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(3) {
				c := newCircle(t, tt.open(t), seed)
				c.carryOut(tt.jobs)
				for w, jobs := range c.ran {
					if len(jobs) > 10 {
						t.Errorf("seed %d: %d jobs ran in the window of second %d, want at most 10: %v", seed, len(jobs), w*10, jobs)
					}
				}
				if lost := tt.jobs - len(c.done); lost != 0 {
					t.Errorf("seed %d: %d of %d jobs never ran", seed, lost, tt.jobs)
				}
				if c.again == 0 || c.late == 0 || c.early == 0 || c.repeats == 0 {
					t.Errorf("seed %d: want jobs that came twice, late and early, and repeats", seed)
				}
				t.Logf("seed %d: %d windows, %d messages in %d deliveries, %d early, %d late; %d repeats, %d runs of a job that had run",
					seed, len(c.ran), c.messages, c.deliveries, c.early, c.late, c.repeats, c.again)
			}
		})
	}
}

// A circle is a guard and a worker in each of two instances, and the queue between them.
// Its time is virtual: it carries out what happens, event by event.
type circle struct {
	t       *testing.T
	random  *rand.Rand
	now     int64
	events  events
	workers []*Worker

	mu   sync.Mutex
	ran  map[int64][]string // the jobs of each window, by the clock that let them run
	done map[string]int     // how often each job ran
	sent map[string]int     // messages of each job

	messages, deliveries, early, late, repeats, again int
}

// An event is what happens at a time, in Unix milliseconds. Messages that are delivered
// at the same time are one batch.
type event struct {
	at      int64
	message string
	do      func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newCircle(t *testing.T, store ratelimit.Store, seed uint64) *circle {
	c := &circle{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), now: start,
		ran: map[int64][]string{}, done: map[string]int{}, sent: map[string]int{},
	}
	for _, ahead := range []int64{0, 1000} {
		clock := func() time.Time { return time.UnixMilli(c.now + ahead) }
		h := &guard.Handler{
			Guard: cricket.Jobs, DenyOutage: true,
			Limiter: &ratelimit.Limiter{Store: store, Memory: ratelimit.NewMemory(1 << 20), Timeout: 20 * time.Second, Now: clock},
		}
		w := &Worker{Guard: h, Delayed: sender(c.enqueue), Ready: sender(func(job guard.Job, _ time.Duration) { c.run(clock(), job.RequestID) })}
		h.Delay = func(ctx context.Context, job guard.Job) error {
			return w.Delayed.Send(ctx, job, time.UnixMilli(job.ReadyAt).Sub(clock()))
		}
		c.workers = append(c.workers, w)
	}
	return c
}

// sender is a queue whose messages go to a function.
type sender func(guard.Job, time.Duration)

func (s sender) Send(_ context.Context, job guard.Job, delay time.Duration) error {
	s(job, delay)
	return nil
}

// run notes that a job may run, by this clock.
func (c *circle) run(clock time.Time, job string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := clock.UnixMilli() / window
	if !slices.Contains(c.ran[w], job) {
		c.ran[w] = append(c.ran[w], job)
	}
	if c.done[job]++; c.done[job] > 1 {
		c.again++
	}
}

// enqueue delivers a message up to four times: on time, early or late. A job that has
// had many messages gets no more copies, because each copy can make further ones.
func (c *circle) enqueue(job guard.Job, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := Body(job)
	if err != nil {
		c.t.Error(err)
	}
	c.messages++
	c.sent[job.RequestID]++
	copies := 1
	if c.sent[job.RequestID] < 5 && c.random.IntN(3) == 0 {
		copies = 1 + c.random.IntN(4)
	}
	for range copies {
		at := (c.now + delay.Milliseconds() + 999) / 1000 * 1000 // SQS counts whole seconds
		switch c.random.IntN(6) {
		case 0:
			at = max(c.now, at-c.random.Int64N(8000))
			c.early++
		case 1:
			at += c.random.Int64N(40_000)
			c.late++
		}
		heap.Push(&c.events, event{at: at, message: text})
	}
}

// ask lets the app ask for a job, sometimes again: a little later, or when the window of
// its place is over.
func (c *circle) ask(id string, repeats int) {
	r := guard.Request{UserID: canary, Activity: "update_member_role", RequestID: id, Job: []byte(`{}`)}
	w := c.workers[c.random.IntN(len(c.workers))]
	a := testkit.Must(w.Guard.Decide(c.t.Context(), r))(c.t)
	switch {
	case a.Allowed:
		c.run(w.Guard.Limiter.Clock(), id)
	case a.Decision.ReadyAt == 0: // no place: it comes back
		c.at(a.Decision.Wait.Milliseconds(), func() { c.ask(id, repeats) })
		return
	}
	if repeats > 0 {
		c.repeats++
		c.at(c.random.Int64N(25_000), func() { c.ask(id, repeats-1) })
	}
}

func (c *circle) at(after int64, do func()) { heap.Push(&c.events, event{at: c.now + after, do: do}) }

// carryOut lets this many jobs come, eight in a second, and carries out all that follows.
func (c *circle) carryOut(jobs int) {
	for n := range jobs {
		repeats := 0
		if c.random.IntN(4) == 0 {
			repeats = c.random.IntN(4)
		}
		c.at(c.random.Int64N(int64(jobs)*120), func() { c.ask(fmt.Sprint("job-", n), repeats) })
	}
	for len(c.events) > 0 {
		next := heap.Pop(&c.events).(event)
		c.now = max(c.now, next.at)
		if next.do != nil {
			next.do()
			continue
		}
		batch := []string{next.message}
		for len(c.events) > 0 && len(batch) < 10 && c.events[0].do == nil && c.events[0].at <= c.now {
			batch = append(batch, heap.Pop(&c.events).(event).message)
		}
		if c.deliveries += len(batch); c.deliveries > 20*jobs {
			c.t.Fatalf("%d of %d jobs have run after %d deliveries, want an end", len(c.done), jobs, c.deliveries)
		}
		answer, err := c.workers[c.random.IntN(len(c.workers))].Invoke(c.t.Context(), sqstest.Event(c.t, batch...))
		if failed := sqstest.Failed(c.t, answer); err != nil || failed != "" {
			c.t.Fatalf("%s failed: %v", failed, err)
		}
	}
}
