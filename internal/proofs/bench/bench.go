//go:build unix

// Package bench measures what a decision costs: CPU, allocations, start-up and
// wall time, each beside its goal.
//
// On a shared machine, the same code takes 15 % more or less time from one run to
// the next. So each measurement has two rules:
//
//   - It takes turns. What is measured and what it is compared with run in short
//     rounds, one after the other, and each round gives one ratio. The result is
//     the median of the ratios. Its spread is their middle half.
//   - It counts the CPU time of the process, not the wall time. Most of the wall
//     time belongs to DynamoDB Local.
//
// The command internal/proofs/bench/run runs the measurements, which are tests, saves what
// they find, and writes docs/performance.md.
package bench

import (
	"runtime"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/proofs/bench/cputime"
	"github.com/cric-talk/guards/internal/proofs/findings"
)

// A Case is something to measure.
type Case struct {
	Name string
	Do   func()               // performs it once
	CPU  func() time.Duration // the CPU time of the process that works, so far; nil: this process
}

// A Cost is what performing a Case once takes, on average over a round.
type Cost struct {
	CPU, Wall     float64 // microseconds
	Allocs, Bytes float64 // of this process
}

// Alternate measures cases in turn, in every second round in the opposite order. Each
// round performs each case n times. A first round that does not count warms everything
// up. The result has a list of rounds for each case.
func Alternate(rounds, n int, cases []Case) [][]Cost {
	costs := make([][]Cost, len(cases))
	for round := range rounds + 1 {
		for i := range cases {
			if round%2 == 1 {
				i = len(cases) - 1 - i
			}
			cost := measure(cases[i], n)
			if round > 0 {
				costs[i] = append(costs[i], cost)
			}
		}
	}
	return costs
}

func measure(c Case, n int) Cost {
	cpu := c.CPU
	if cpu == nil {
		cpu = cputime.Own
	}
	var before, after runtime.MemStats
	runtime.GC() // no case pays for the garbage of the one before
	runtime.ReadMemStats(&before)
	began, used := time.Now(), cpu()
	for range n {
		c.Do()
	}
	used, took := cpu()-used, time.Since(began)
	runtime.ReadMemStats(&after)
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(n) }
	return Cost{
		CPU: each(used), Wall: each(took),
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}
}

// Of returns the spread of a figure over the rounds of a case.
func Of(rounds []Cost, figure func(Cost) float64) findings.Spread {
	values := make([]float64, len(rounds))
	for i, c := range rounds {
		values[i] = figure(c)
	}
	return spread(values)
}

// Ratio returns the spread of the ratio of a figure between two cases, round by
// round.
func Ratio(rounds, base []Cost, figure func(Cost) float64) findings.Spread {
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = figure(rounds[i]) / figure(base[i])
	}
	return spread(values)
}

// Over returns how much a figure is above another case's: median above median, and
// each quartile above the same one, because other work on the machine slows both.
func Over(rounds, base []Cost, figure func(Cost) float64) findings.Spread {
	s, from := Of(rounds, figure), Of(base, figure)
	return findings.Spread{Low: s.Low - from.Low, Median: s.Median - from.Median, High: s.High - from.High}
}

func spread(values []float64) findings.Spread {
	slices.Sort(values)
	n := len(values)
	return findings.Spread{Low: values[n/4], Median: values[n/2], High: values[n-1-n/4]}
}

// CPU returns the CPU time, for [Of] and [Ratio].
func CPU(c Cost) float64 { return c.CPU }

// Wall returns the time on the clock, for [Of] and [Ratio].
func Wall(c Cost) float64 { return c.Wall }

// Allocs returns the number of allocations, for [Of] and [Ratio].
func Allocs(c Cost) float64 { return c.Allocs }

// Bytes returns the bytes that were allocated, for [Of] and [Ratio].
func Bytes(c Cost) float64 { return c.Bytes }
