package scenarios_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The guard's limit is log 3/6s.
const (
	mostWorkers = 3
	window      = 6 * time.Second
)

// A crew is workers that want the same slots. Each is a process of its own with a
// client.
type crew struct {
	yard  *yard
	guard string
	begin chan bool // is closed when all are ready
	end   time.Time
	slow  bool // whether work can take longer than a slot lasts

	mu      sync.Mutex
	shifts  []shift
	worked  []int // shifts of each worker
	refused int
	lost    int
	without int // of a receipt
	kills   int
}

// A shift is the time in which a worker works and was told that it has a slot, in Unix
// milliseconds.
type shift struct{ began, ended int64 }

// Workers want three slots. Answers are lost, workers are killed, and the guard
// restarts. Never more than three work that were told so, none starves, and no slot is
// used one window after the end. Five workers do so for some seconds. With WORKERS=5m,
// twelve do so for five minutes, with each client.
func TestWorkersWithSlots(t *testing.T) {
	lasts, workers := 6*time.Second, 5
	if long := os.Getenv("WORKERS"); long != "" {
		var err error
		if lasts, err = time.ParseDuration(long); err != nil {
			t.Fatal(err)
		}
		workers = 12
	}
	everyClient(t, func(t *testing.T, c client) {
		crew := &crew{
			yard: openYard(t), guard: "crew-guard", begin: make(chan bool), slow: lasts >= time.Minute, worked: make([]int, workers),
		}
		own := crew.yard.post(crew.guard, &post{fault: someLoss})
		var wg, ready sync.WaitGroup
		ready.Add(workers)
		for i := range workers {
			wg.Go(func() { crew.work(t, c, i, &ready) })
		}
		ready.Wait()
		crew.end = time.Now().Add(lasts)
		close(crew.begin)
		restarts := crew.restarts(own)
		wg.Wait()
		time.Sleep(window)
		used, most := own.used(t), mostAtOnce(crew.shifts)
		t.Logf("%v: %d shifts, at most %d at once; by worker %v; %d refusals, %d lost, %d without a receipt, %d killed, %d restarts; %d slots used at the end",
			lasts, len(crew.shifts), most, crew.worked, crew.refused, crew.lost, crew.without, crew.kills, restarts, used)
		if most > mostWorkers || used != 0 {
			t.Errorf("%d work at once, and %d slots are used at the end, want at most %d and none", most, used, mostWorkers)
		}
		if crew.slow && slices.Min(crew.worked) < int(lasts.Minutes()) {
			t.Errorf("a worker starves: %v", crew.worked)
		}
		if most < mostWorkers || crew.kills == 0 || restarts == 0 {
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
	}
	for pause := 2 * time.Second; time.Until(c.end) > pause; pause = 5*time.Second + rand.N(20*time.Second) {
		time.Sleep(pause)
		set(func(string, int) loss { return all })
		time.Sleep(500*time.Millisecond + rand.N(1500*time.Millisecond))
		c.yard.mu.Lock()
		p.restart()
		c.yard.mu.Unlock()
		set(someLoss)
		n++
	}
	return n
}

// work is the life of one worker. After it was killed, a new process takes its place.
func (c *crew) work(t *testing.T, client client, i int, ready *sync.WaitGroup) {
	isReady := sync.OnceFunc(ready.Done)
	defer isReady()
	for first := true; first || !c.over(); first = false {
		d := client.start(t, c.yard.url, nil)
		if _, err := d.ask(map[string]any{"new": map[string]any{"onOutage": "deny"}}); err != nil {
			t.Error(err)
			return
		}
		isReady()
		<-c.begin
		for !c.over() && c.shift(t, d, i) {
			time.Sleep(rand.N(20 * time.Millisecond))
		}
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
	return late > time.Minute || c.kills > 0 && mostAtOnce(c.shifts) == mostWorkers
}

// shift asks for a slot and works in it. It returns false if the worker is killed.
func (c *crew) shift(t *testing.T, d *driver, i int) (alive bool) {
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
	if !c.firstOf(i) && (!c.slow || rand.N(30) != 0) {
		kill.Stop()
		close(killed)
	}
	before := len(beginnings(d))
	activity := map[string]any{"guard": c.guard, "activity": "export"}
	got, err := d.ask(map[string]any{"call": "slot", "activity": activity, "work": takes.Milliseconds(), "args": map[string]any{"userId": "u1"}})
	if kill.Stop() {
		close(killed)
	}
	at, dead := <-killed
	c.mu.Lock()
	defer c.mu.Unlock()
	if dead {
		c.kills++
		for _, began := range beginnings(d)[before:] {
			c.shifts = append(c.shifts, shift{began, at})
		}
		return false
	}
	c.note(t, i, got, err)
	return err == nil
}

// firstOf reports whether nobody was killed yet, and the worker is the first one or has
// worked.
func (c *crew) firstOf(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kills == 0 && (i == 0 || c.worked[i] > 0)
}

// note counts what came of asking for a slot.
func (c *crew) note(t *testing.T, i int, got result, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Error(err)
	case got.Error != nil:
		t.Errorf("%+v", *got.Error)
	case got.Answer["allowed"] == false:
		c.refused++
		c.mu.Unlock()
		time.Sleep(50*time.Millisecond + rand.N(450*time.Millisecond))
		c.mu.Lock()
	case got.Answer["heldUntil"] == nil:
		c.without++
	default:
		began, _ := got.Answer["began"].(float64)
		ended, _ := got.Answer["ended"].(float64)
		c.shifts = append(c.shifts, shift{int64(began), int64(ended)})
		c.worked[i]++
		if got.Answer["lost"] == true {
			c.lost++
		}
	}
}

// beginnings returns when the shifts of a worker began, as it wrote at once.
func beginnings(d *driver) (all []int64) {
	for line := range strings.Lines(d.log.String()) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "began "); ok {
			ms, _ := strconv.ParseInt(at, 10, 64)
			all = append(all, ms)
		}
	}
	return all
}

// mostAtOnce returns how many shifts there are at once, at most.
func mostAtOnce(shifts []shift) (most int) {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for _, s := range shifts {
		changes = append(changes, change{s.began, 1}, change{s.ended, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
