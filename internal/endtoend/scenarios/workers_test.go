package scenarios_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// The guard's limit is log 3/6s.
const (
	maxWorkers = 3
	window     = 6 * time.Second
)

// A crew is workers that want the same slots. Each is a process of its own with a
// client.
type crew struct {
	client client
	yard   *yard
	end    time.Time
	slow   bool // whether work can take longer than a slot lasts

	mu     sync.Mutex
	shifts []shift
	worked []int // shifts of each worker
	kills  int
}

// A shift is a time, in Unix milliseconds, when a worker works and was told that it
// has a slot.
type shift struct{ began, ended int64 }

// Workers want three slots. Answers are lost, workers are killed, and the guard
// restarts. Never more than three work that were told so, none starves, and no slot is
// used one window after the end. Five workers do so for some seconds. With WORKERS=5m,
// twelve do so for five minutes, with each client.
func TestWorkersWithSlots(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	lasts, workers := 6*time.Second, 5
	if long := os.Getenv("WORKERS"); long != "" {
		var err error
		if lasts, err = time.ParseDuration(long); err != nil {
			t.Fatal(err)
		}
		workers = 12
	}
	everyClient(t, func(t *testing.T, c client) {
		crew := &crew{client: c, yard: openYard(t), slow: lasts >= time.Minute, worked: make([]int, workers)}
		guard := crew.yard.post("crew-guard", &post{fault: someLoss})
		var hired []*driver
		for range workers {
			hired = append(hired, crew.hire(t))
		}
		crew.end = time.Now().Add(lasts)
		var wg sync.WaitGroup
		for i, d := range hired {
			wg.Go(func() { crew.work(t, i, d) })
		}
		restarts := crew.restarts(guard)
		wg.Wait()
		time.Sleep(window)
		used, most := guard.used(t), maxAtOnce(crew.shifts)
		t.Logf("%v: at most %d at once; shifts of each worker: %v; %d killed, %d restarts; %d slots used at the end", lasts, most, crew.worked, crew.kills, restarts, used)
		if most > maxWorkers || used != 0 {
			t.Errorf("%d work at once, and %d slots are used at the end, want at most %d and none", most, used, maxWorkers)
		}
		if crew.slow && slices.Min(crew.worked) < int(lasts.Minutes()) {
			t.Errorf("a worker starves: %v", crew.worked)
		}
		if most < maxWorkers || crew.kills == 0 || restarts == 0 {
			t.Error("this proves nothing")
		}
	})
}

// someLoss loses one request in twenty, before or after the guard decides.
func someLoss(string, int) loss {
	switch rand.N(40) {
	case 0:
		return reply
	case 1:
		return all
	}
	return nothing
}

// restarts stops the guard now and then, and starts a new instance.
func (c *crew) restarts(p *post) (n int) {
	set := func(fault func(string, int) loss) {
		c.yard.mu.Lock()
		defer c.yard.mu.Unlock()
		p.fault = fault
		p.restart()
	}
	for pause := 2 * time.Second; time.Until(c.end) > pause; pause = 5*time.Second + rand.N(20*time.Second) {
		time.Sleep(pause)
		set(func(string, int) loss { return all })
		time.Sleep(500*time.Millisecond + rand.N(1500*time.Millisecond))
		set(someLoss)
		n++
	}
	return n
}

// hire starts the process of a worker.
func (c *crew) hire(t *testing.T) *driver {
	t.Helper()
	d := c.client.start(t, c.yard.url, nil)
	_, err := d.ask(map[string]any{"new": map[string]any{"onOutage": "deny"}})
	testkit.NoError(t, err)
	return d
}

// work is the life of one worker. After it was killed, a new process takes its place.
func (c *crew) work(t *testing.T, i int, d *driver) {
	for !c.over() && !t.Failed() {
		if dead := c.shift(t, i, d); dead {
			d = c.hire(t)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// over reports whether the end has come. On a busy machine, the end waits for up to a
// minute until the run proves something.
func (c *crew) over() bool {
	late := time.Since(c.end)
	if late < 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return late > time.Minute || c.kills > 0 && maxAtOnce(c.shifts) == maxWorkers
}

// shift asks for a slot and works in it, unless the worker is killed.
func (c *crew) shift(t *testing.T, i int, d *driver) (dead bool) {
	takes := 300*time.Millisecond + rand.N(1500*time.Millisecond)
	if c.slow && rand.N(4) == 0 {
		takes = 2*time.Second + rand.N(8*time.Second)
	}
	killed := make(chan int64, 1)
	kill := time.AfterFunc(takes/2, func() {
		d.killed = true
		killed <- time.Now().UnixMilli()
		_ = d.process.Kill()
	})
	dies := c.dies(i)
	if !dies {
		kill.Stop()
	}
	before := len(beginnings(d))
	got, err := d.ask(map[string]any{
		"call": "slot", "activity": map[string]any{"guard": "crew-guard", "activity": "export"}, "work": takes.Milliseconds(), "args": map[string]any{"userId": "u1"},
	})
	dead = dies && !kill.Stop()
	switch {
	case dead:
		at := <-killed
		c.mu.Lock()
		defer c.mu.Unlock()
		c.kills++
		for _, began := range beginnings(d)[before:] {
			c.shifts = append(c.shifts, shift{began, at})
		}
	case err != nil || got.Error != nil:
		t.Errorf("%+v, %v", got.Error, err)
	case got.Answer["allowed"] == false:
		time.Sleep(50*time.Millisecond + rand.N(450*time.Millisecond))
	case got.Answer["heldUntil"] != nil:
		began, _ := got.Answer["began"].(float64)
		ended, _ := got.Answer["ended"].(float64)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.shifts = append(c.shifts, shift{int64(began), int64(ended)})
		c.worked[i]++
	}
	return dead
}

// dies reports whether the test kills a worker in its next shift. The first kill hits the first
// worker, or one that has worked. After that, one shift in thirty is killed if work is slow.
func (c *crew) dies(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kills == 0 && (i == 0 || c.worked[i] > 0) || c.slow && rand.N(30) == 0
}

// beginnings returns when the shifts of a worker began, as it wrote at once.
func beginnings(d *driver) (all []int64) {
	for line := range strings.Lines(d.logged()) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "began "); ok {
			ms, _ := strconv.ParseInt(at, 10, 64)
			all = append(all, ms)
		}
	}
	return all
}

// maxAtOnce returns how many shifts there are at once, at most. The most are there when a
// shift begins.
func maxAtOnce(shifts []shift) (most int) {
	for _, one := range shifts {
		now := 0
		for _, other := range shifts {
			if other.began <= one.began && one.began < other.ended {
				now++
			}
		}
		most = max(most, now)
	}
	return most
}
