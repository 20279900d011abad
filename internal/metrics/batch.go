package metrics

import (
	"slices"
	"sync"
	"time"
)

// most is how long a value waits for its line while decisions come.
const most = time.Second

// A Batch adds up values, so that an instance under load writes about one line a
// second for each activity, and not one for each decision. A nil Batch writes
// nothing. A Batch is safe for concurrent use.
//
// A value that comes at least a second after the last line is written at once.
// Later values wait. The first value that comes a second or more after the last
// line is written together with them. For example, with a value every 400 ms:
//
//	value at   0.0   0.4   0.8   1.2         1.6   2.0   2.4
//	written    0.0               0.4 to 1.2              1.6 to 2.4
//
// Lambda freezes an instance between invocations, so no timer can write the
// values that wait. They are written with the next value, or by [Batch.Flush]
// when the instance is shut down. Each line has the time of its first value, so a
// value can be shown up to two seconds early.
type Batch struct {
	Writer Writer

	mu      sync.Mutex
	written time.Time // of the last line
	since   time.Time // of the first value that waits
	waiting []line
}

// A line holds the values that wait for one set of dimensions.
type line struct {
	dimensions []Dimension
	values     []Value
}

// Add adds values with these dimensions.
func (b *Batch) Add(at time.Time, dimensions []Dimension, values []Value) {
	if b == nil || len(values) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	due := apart(at, b.written)
	if len(b.waiting) > 0 && apart(at, b.since) {
		b.flush() // the instance was frozen, and these values belong to an earlier time
	}
	if len(b.waiting) == 0 {
		b.since = at
	}
	b.add(dimensions, values)
	if due {
		b.flush()
		b.written = at
	}
}

// apart reports whether two times are at least a second apart. A clock can step
// back.
func apart(a, b time.Time) bool { return a.Sub(b).Abs() >= most }

func (b *Batch) add(dimensions []Dimension, values []Value) {
	i := slices.IndexFunc(b.waiting, func(l line) bool { return slices.Equal(l.dimensions, dimensions) })
	if i < 0 {
		i = len(b.waiting)
		b.waiting = append(b.waiting, line{dimensions: slices.Clone(dimensions)})
	}
	l := &b.waiting[i]
	for _, v := range values {
		k := slices.IndexFunc(l.values, func(have Value) bool { return have.Name == v.Name })
		if k < 0 {
			l.values = append(l.values, v)
		} else {
			l.values[k].Count += v.Count
		}
	}
}

// Flush writes all values that wait. Callers use it for values that must not wait.
func (b *Batch) Flush() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flush()
}

func (b *Batch) flush() {
	for _, l := range b.waiting {
		b.Writer.Write(b.since, l.dimensions, l.values)
	}
	b.waiting = b.waiting[:0]
}
