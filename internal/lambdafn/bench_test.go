package lambdafn_test

import (
	"slices"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// BenchmarkStart compares the start of a guard with the start of a function
// without work. A start ends with the first request for an event. The two take
// turns, and the benchmark reports the median of their differences.
func BenchmarkStart(b *testing.B) {
	bare := lambdatest.Build(b, "./internal/lambdafn/testdata/bare")
	posts := lambdatest.Build(b, "./functions/posts-guard")
	var guards, bares, more []float64
	for b.Loop() {
		bareStart := ready(b, bare)
		guardStart := ready(b, posts)
		bares = append(bares, bareStart)
		guards = append(guards, guardStart)
		more = append(more, guardStart-bareStart)
	}
	b.ReportMetric(median(bares), "bare-ms")
	b.ReportMetric(median(guards), "guard-ms")
	b.ReportMetric(median(more), "more-ms")
	b.ReportMetric(0, "ns/op") // covers both, and the end of their processes
}

func ready(b *testing.B, binary string) (ms float64) {
	i := lambdatest.Start(b, binary)
	defer i.Stop()
	return i.Ready(b).Seconds() * 1000
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
