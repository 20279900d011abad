// Package metrics writes metrics for CloudWatch in its embedded metric format.
//
// Lambda sends what a function prints to CloudWatch Logs. CloudWatch finds the
// lines in this format there and makes metrics of them, so a function sends no
// request for its metrics. One line looks like this, without the line breaks:
//
//	{"_aws":{"Timestamp":1700000000000,"CloudWatchMetrics":[{"Namespace":"Guards",
//	"Dimensions":[["Guard"]],"Metrics":[{"Name":"Refused","Unit":"Count"}]}]},
//	"Guard":"posts-guard","Refused":1}
package metrics

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/strictjson"
)

// A Writer writes one line for each call of Write. The zero Writer writes
// nothing. A Writer is safe for concurrent use if W is.
type Writer struct {
	W         io.Writer // where the lines go; nil for no metrics
	Namespace string    // the namespace of the metrics in CloudWatch
}

// A Dimension is one part of a metric's identity, such as Guard=posts-guard.
type Dimension struct{ Name, Value string }

// A Value is one figure. Its unit is Count.
type Value struct {
	Name  string
	Count int64
}

// Write writes one line with all values. The values share the dimensions.
// Without values it writes nothing. It ignores an error of W, because a lost
// metric is no reason to fail.
func (w Writer) Write(now time.Time, dimensions []Dimension, values []Value) {
	if w.W == nil || len(values) == 0 {
		return
	}
	b := append(make([]byte, 0, 512), `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = appendText(append(b, `,"CloudWatchMetrics":[{"Namespace":`...), w.Namespace)
	b = append(b, `,"Dimensions":[[`...)
	for _, d := range dimensions {
		b = append(appendText(b, d.Name), ',')
	}
	b = append(bytes.TrimSuffix(b, []byte(",")), `]],"Metrics":[`...)
	for _, v := range values {
		b = append(appendText(append(b, `{"Name":`...), v.Name), `,"Unit":"Count"},`...)
	}
	b = append(bytes.TrimSuffix(b, []byte(",")), `]}]}`...)
	for _, d := range dimensions {
		b = append(appendText(append(b, ','), d.Name), ':')
		b = appendText(b, d.Value)
	}
	for _, v := range values {
		b = append(appendText(append(b, ','), v.Name), ':')
		b = strconv.AppendInt(b, v.Count, 10)
	}
	_, _ = w.W.Write(append(b, "}\n"...)) // one call, so that lines never mix
}

// appendText appends s as a JSON string. Bytes that are not UTF-8 are replaced.
func appendText(b []byte, s string) []byte {
	b, _ = strictjson.AppendQuote(b, s)
	return b
}

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

// apart reports whether two times are a second or more apart. A clock can step back.
func apart(a, b time.Time) bool { return a.Sub(b).Abs() >= time.Second }

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
