package traffic

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"
)

// furthestBack is how far lines may be out of order: clocks of servers differ,
// and a load balancer writes what it has when it has it. If lines are further out
// of order, the file was never sorted by time, and a replay of it would be wrong.
const furthestBack = 10 * time.Minute

// maxHeld is how many lines wait for an earlier one. In traffic with more lines
// in ten minutes, a line that comes later than this is a step back.
const maxHeld = 1 << 16

// An order puts the lines of one file in the order of time. A file may run
// backwards, as CloudWatch Insights writes it.
type order struct {
	tally *Tally
	held  []Line // of a file whose direction is unknown, or which runs backwards
	queue queue

	directed         bool // the direction is known
	backwards        bool
	ups, downs       int // steps of the time, until the direction is known
	last             int64
	latest, earliest int64 // of all lines
}

// add takes the next line. Its error is about a file that is not sorted.
func (o *order) add(line Line) error {
	if len(o.held) == 0 && !o.directed {
		o.last, o.latest, o.earliest = line.Time, line.Time, line.Time
	}
	if o.directed {
		return o.take(line)
	}
	switch {
	case line.Time > o.last:
		o.ups++
	case line.Time < o.last:
		o.downs++
	}
	o.last, o.latest, o.earliest = line.Time, max(o.latest, line.Time), min(o.earliest, line.Time)
	o.held = append(o.held, line)
	if between(o.earliest, o.latest) > furthestBack || len(o.held) == maxHeld {
		return o.direct()
	}
	return nil
}

// between returns the time from a to b, which is at most 292 years, the longest
// duration.
func between(a, b int64) time.Duration { return time.UnixMilli(b).Sub(time.UnixMilli(a)) }

// direct finds out whether the file runs backwards, and takes the lines so far.
func (o *order) direct() error {
	held := o.held
	o.held, o.directed = nil, true
	if len(held) == 0 {
		return nil
	}
	far := between(o.earliest, o.latest) > furthestBack
	o.backwards = o.downs > 4*o.ups && (o.downs >= 10 || far)
	o.latest, o.earliest = held[0].Time, held[0].Time
	for _, line := range held {
		if err := o.take(line); err != nil {
			return err
		}
	}
	return nil
}

// take takes a line of a file whose direction is known.
func (o *order) take(line Line) error {
	by, where := between(line.Time, o.latest), "before that of an earlier line, want lines sorted by time"
	if o.backwards {
		by, where = between(o.earliest, line.Time), "after that of an earlier line of a file that runs backwards, want lines sorted by time"
	}
	o.latest, o.earliest = max(o.latest, line.Time), min(o.earliest, line.Time)
	if by > furthestBack {
		return fmt.Errorf("time is %v %s (they may be out of order by %v)", by, where, furthestBack)
	}
	if by > 0 {
		o.tally.Back++
		o.tally.Furthest = max(o.tally.Furthest, by)
	}
	if o.backwards {
		o.held = append(o.held, line)
		return nil
	}
	o.queue.push(line)
	return nil
}

// isReady reports whether the earliest line can be taken before more lines are known.
func (o *order) isReady() bool {
	if !o.directed || o.backwards || o.queue.size() == 0 {
		return false
	}
	return o.queue.size() >= maxHeld || between(o.queue.first(), o.latest) > furthestBack
}

// end tells that no more lines come.
func (o *order) end() error {
	if !o.directed {
		if err := o.direct(); err != nil {
			return err
		}
	}
	if o.backwards {
		slices.Reverse(o.held)
		slices.SortStableFunc(o.held, func(a, b Line) int { return cmp.Compare(a.Time, b.Time) })
		o.queue.sorted, o.held = o.held, nil
	}
	return nil
}

// A queue returns lines in the order of their times, and lines of one time in the
// order of their arrival. Most lines come in the order of time already.
type queue struct {
	sorted []Line
	head   int  // of sorted
	late   late // lines that came after a later one
	count  int64
}

func (q *queue) size() int { return len(q.sorted) - q.head + len(q.late) }

func (q *queue) push(line Line) {
	if n := len(q.sorted); n > q.head && line.Time < q.sorted[n-1].Time {
		q.count++
		heap.Push(&q.late, &lateLine{line, q.count})
		return
	}
	if q.head == len(q.sorted) || len(q.sorted) == cap(q.sorted) && q.head > len(q.sorted)/2 { // free space at the end
		q.sorted = append(q.sorted[:0], q.sorted[q.head:]...)
		q.head = 0
	}
	q.sorted = append(q.sorted, line)
}

// first returns the time of the next line.
func (q *queue) first() int64 {
	switch {
	case len(q.late) == 0:
		return q.sorted[q.head].Time
	case q.head == len(q.sorted):
		return q.late[0].Time
	}
	return min(q.late[0].Time, q.sorted[q.head].Time)
}

func (q *queue) pop() Line {
	if len(q.late) > 0 && (q.head == len(q.sorted) || q.late[0].Time < q.sorted[q.head].Time) {
		return heap.Pop(&q.late).(*lateLine).Line
	}
	line := q.sorted[q.head]
	q.sorted[q.head] = Line{}
	q.head++
	return line
}

// late is a heap.
type late []*lateLine

type lateLine struct {
	Line
	number int64
}

func (l late) Len() int      { return len(l) }
func (l late) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l late) Less(i, j int) bool {
	return l[i].Time < l[j].Time || l[i].Time == l[j].Time && l[i].number < l[j].number
}
func (l *late) Push(x any) { *l = append(*l, x.(*lateLine)) }
func (l *late) Pop() any {
	i := len(*l) - 1
	last := (*l)[i]
	(*l)[i], *l = nil, (*l)[:i]
	return last
}
