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
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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
	b := make([]byte, 0, 512)
	b = append(b, `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = append(b, `,"CloudWatchMetrics":[{"Namespace":`...)
	b = appendText(b, w.Namespace)
	b = append(b, `,"Dimensions":[[`...)
	for i, d := range dimensions {
		b = appendText(appendComma(b, i), d.Name)
	}
	b = append(b, `]],"Metrics":[`...)
	for i, v := range values {
		b = appendText(append(appendComma(b, i), `{"Name":`...), v.Name)
		b = append(b, `,"Unit":"Count"}`...)
	}
	b = append(b, `]}]}`...)
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

// appendComma appends a comma, except before the first element.
func appendComma(b []byte, i int) []byte {
	if i == 0 {
		return b
	}
	return append(b, ',')
}

// appendText appends s as a JSON string. Bytes that are not UTF-8 are replaced.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
