//go:build linux

package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// Lambda gives a function with so many MB one whole core, and others a share.
const wholeCore = 1769

// Prices of Lambda, as docs/operating.md has them.
const (
	perRequest  = 0.20 / 1e6
	perGBSecond = 0.0000133334 // arm64
)

// period is how often the kernel hands out CPU time.
const period = 20 * time.Millisecond

// slowed returns a program that starts binary with a share of one core.
func slowed(t *testing.T, binary string, share float64) string {
	t.Helper()
	quota, us := share*float64(period.Microseconds()), period.Microseconds()
	group, settings := "/sys/fs/cgroup/cpu", [][2]string{{"cpu.cfs_period_us", fmt.Sprint(us)}, {"cpu.cfs_quota_us", fmt.Sprintf("%.0f", quota)}}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group, settings = "/sys/fs/cgroup", [][2]string{{"cpu.max", fmt.Sprintf("%.0f %d", quota, us)}}
	}
	group = filepath.Join(group, fmt.Sprintf("guards-bench-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("a share of a core needs a cgroup: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	for _, s := range settings {
		if err := os.WriteFile(filepath.Join(group, s[0]), []byte(s[1]), 0); err != nil {
			t.Skipf("a share of a core needs a cgroup: %v", err)
		}
	}
	script := filepath.Join(t.TempDir(), filepath.Base(binary))
	text := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs\nexec %s\n", group, binary)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return script
}

// times are the durations of some invocations.
type times []time.Duration

func (d times) quantile(q float64) string {
	slices.Sort(d)
	return fmt.Sprintf("%.2f", float64(d[int(q*float64(len(d)-1))].Microseconds())/1000)
}

// billed returns the milliseconds that Lambda bills for each on average.
func (d times) billed() float64 {
	sum := 0.0
	for _, took := range d {
		sum += float64((took + time.Millisecond - 1) / time.Millisecond)
	}
	return sum / float64(len(d))
}

// million returns the price of a million invocations, in dollars.
func (d times) million(megabytes int) float64 {
	seconds := d.billed() / 1000
	return 1e6 * (perRequest + seconds*float64(megabytes)/1024*perGBSecond)
}

func dollars(n float64) string { return fmt.Sprintf("%.2f", n) }

// How long decisions take with the CPU that Lambda gives to functions of several
// memory sizes, and what a million costs. DynamoDB Local answers 4 ms late.
func TestMemorySizes(t *testing.T) {
	rounds(t)
	proxy, binary := dynamotest.NewProxy(t), lambdatest.Build(t, "./functions/posts-guard")
	proxy.Do(func(string) dynamotest.Fault {
		time.Sleep(4 * time.Millisecond)
		return dynamotest.Pass
	})
	name := dynamotest.Table(t)
	table := findings.Table{
		Title: "Decisions of posts-guard, one after the other",
		Head: []string{
			"MB", "garbage collection", "allowed: p50 ms", "allowed: p99 ms", "allowed: billed ms", "allowed: $ a million",
			"refused: p50 ms", "refused: p99 ms", "refused: $ a million", "resident MB",
		},
	}
	chart := findings.Chart{Name: "memory", Title: "Lambda's price of a million decisions, in $"}
	for _, megabytes := range []int{128, 256, 512, wholeCore} {
		for _, gc := range []string{"GOGC=100", "GOGC=400", fmt.Sprintf("GOGC=off GOMEMLIMIT=%dMiB", megabytes*6/10)} {
			env := append(strings.Fields(gc), "TABLE_NAME="+name, "AWS_ENDPOINT_URL_DYNAMODB="+proxy.URL(),
				fmt.Sprintf("AWS_LAMBDA_FUNCTION_MEMORY_SIZE=%d", megabytes))
			i := lambdatest.Start(t, slowed(t, binary, float64(megabytes)/wholeCore), env...)
			i.Ready(t)
			allowed, refused := durations(t, i, users()), durations(t, i, again())
			resident, err := i.Memory()
			if err != nil {
				t.Fatal(err)
			}
			i.Stop()
			table.Rows = append(table.Rows, []string{
				fmt.Sprint(megabytes), gc, allowed.quantile(0.5), allowed.quantile(0.99), fmt.Sprintf("%.2f", allowed.billed()), dollars(allowed.million(megabytes)),
				refused.quantile(0.5), refused.quantile(0.99), dollars(refused.million(megabytes)), fmt.Sprint(resident >> 20),
			})
			if gc == "GOGC=100" {
				chart.Bars = append(chart.Bars,
					findings.Bar{Label: fmt.Sprintf("%d MB, allowed", megabytes), Value: allowed.million(megabytes), Text: dollars(allowed.million(megabytes)), Own: true},
					findings.Bar{Label: "refused", Value: refused.million(megabytes), Text: dollars(refused.million(megabytes))})
			}
		}
	}
	Save(t, "memory", findings.Result{Tables: []findings.Table{table}, Charts: []findings.Chart{chart}})
}

// durations returns how long 2,000 invocations take, after some that warm up.
func durations(t *testing.T, i *lambdatest.Instance, next func() []byte) (d times) {
	t.Helper()
	for n := range 2200 {
		if r := i.Invoke(t, string(next())); r.ErrorType != "" {
			t.Fatal(r)
		} else if n >= 200 {
			d = append(d, r.Duration)
		}
	}
	return d
}

// again returns events of one user.
func again() func() []byte {
	return func() []byte { return []byte(`{"userId":"one","activity":"create_post","count":10}`) }
}
