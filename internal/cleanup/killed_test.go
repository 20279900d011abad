package cleanup_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// The real binary sweeps a table while users act. It is killed at random moments
// and started again. It deletes everything that has expired and nothing else,
// it stops before its deadline, and its memory stays flat.
func TestCleanupThatIsKilledHarmsNothing(t *testing.T) {
	prove.Explain(t, "cleanup")
	c := newCrowd(t)
	stale, kept := prove.Bound(3_000, 1_000_000), prove.Bound(200, 20_000)
	prove.Progress("cleanup: adding %d items", stale+kept)
	old, live := c.template(t, time.Now().Add(-60*24*time.Hour)), c.template(t, c.now)
	c.fill(t, "kept", kept, live)
	c.fill(t, " config", 1, []attributes{{"activityWindow": dynamostore.Text("limits")}}) // never expires
	before := c.kept(t)
	c.fill(t, "stale", stale, old)
	for i := range prove.Bound(500, 20_000) { // users who are new, and users who have an item that has expired
		c.asked = append(c.asked, asked{user: fmt.Sprint("stale", 3*i+1), act: 1}, asked{user: fmt.Sprint("stale", 3*i+2), act: 2})
		if i%10 == 0 {
			c.asked = append(c.asked, asked{user: fmt.Sprint("new", i), act: i / 10 % 3})
		}
	}
	rand.Shuffle(len(c.asked), func(i, j int) { c.asked[i], c.asked[j] = c.asked[j], c.asked[i] })

	p := &process{t: t, table: c.table, proxy: dynamotest.NewProxy(t)}
	p.dryRun(stale)
	stop := c.acting(t)
	p.slowly(0, prove.Bound(300*time.Millisecond, 0))
	p.kill(prove.Bound(5, 20), prove.Bound(600*time.Millisecond, 12*time.Second))
	p.finish()
	stop()

	users, checks := c.judge(t)
	left := c.scan(t, "expiresAt < :now", attributes{":now": dynamostore.Number(time.Now().Unix())})
	if len(left) > 0 {
		t.Errorf("%d items that have expired are left, such as %v", len(left), left[0])
	}
	c.unchanged(t, before)
	result := p.result()
	result.Figures = append([]findings.Figure{
		{What: "items that had expired", Value: fmt.Sprint(stale)},
		{What: "of these, left at the end", Value: fmt.Sprint(len(left))},
		{What: "items that had not expired and that nobody used; each is unchanged", Value: fmt.Sprint(len(before))},
		{What: "users who acted meanwhile", Value: fmt.Sprint(users)},
		{What: "their checks, each counted exactly once to the end", Value: fmt.Sprint(checks)},
	}, result.Figures...)
	if !t.Failed() {
		prove.Save(t, "cleanup", result)
	}
}

// result holds the memory of the runs to its bound and returns their figures.
func (p *process) result() findings.Result {
	table := findings.Table{Title: "The runs of cleanup", Head: []string{"run", "end", "after", "deleted", "memory at most"}}
	var peaks []int64 // of all runs but the dry run
	killed, stopped, longest := 0, 0, time.Duration(0)
	for i, r := range p.runs {
		peak := slices.Max(append(r.memory, 0))
		end, deleted := "finished", fmt.Sprint(r.Deleted)
		switch {
		case i == 0:
			end = "finished (dry run)"
		case r.killed:
			end, deleted = "killed", "unknown"
			killed++
		case !r.Finished:
			end = "stopped before its deadline"
			stopped++
			longest = max(longest, r.took)
		}
		if i > 0 {
			peaks = append(peaks, peak)
		}
		table.Rows = append(table.Rows, []string{fmt.Sprint(i + 1), end, r.took.Round(10 * time.Millisecond).String(), deleted, megabytes(peak)})
	}
	const noise = 32 << 20
	figures := []findings.Figure{
		{What: "runs that were killed", Value: fmt.Sprint(killed)},
		{What: "runs that stopped before their deadline", Value: fmt.Sprintf("%d; the deadline was %v, the last answer came after %v", stopped, deadline(), longest.Round(time.Millisecond))},
	}
	for _, m := range []struct {
		of      string
		samples []int64
	}{{"one run over all items", p.runs[0].memory}, {"the other runs together", peaks}} {
		first, last := flat(m.samples)
		if last > first+noise {
			p.t.Errorf("memory of %s: %s in the first quarter and %s in the last, want about as much", m.of, megabytes(first), megabytes(last))
		}
		figures = append(figures, findings.Figure{What: "memory of " + m.of, Value: "at most " + megabytes(first) + " in the first quarter, " + megabytes(last) + " in the last"})
	}
	return findings.Result{Figures: figures, Tables: []findings.Table{table}}
}

// With CleanupConcurrency=0, runs can overlap. Two sweeps and an erasure at once, beside
// users who act, delete what has expired, and nothing else.
func TestRunsThatOverlapHarmNothing(t *testing.T) {
	c := newCrowd(t)
	const stale, kept, erased = 3_000, 200, 30
	old, live := c.template(t, time.Now().Add(-60*24*time.Hour)), c.template(t, c.now)
	c.fill(t, "kept", kept, live)
	before := c.kept(t)
	c.fill(t, "stale", stale, old)
	for i := range erased { // a user with an expired item and one in use
		c.fill(t, fmt.Sprint("gone", i, "-"), 1, old[:1])
		c.fill(t, fmt.Sprint("gone", i, "-"), 1, live[1:2])
	}
	for i := range 500 {
		c.asked = append(c.asked, asked{user: fmt.Sprint("stale", 3*i+1), act: 1}, asked{user: fmt.Sprint("stale", 3*i+2), act: 2})
	}
	rand.Shuffle(len(c.asked), func(i, j int) { c.asked[i], c.asked[j] = c.asked[j], c.asked[i] })
	stop := c.acting(t)

	run := func(r Request) (Answer, error) {
		return (&Cleanup{Table: table.New(c.store.Table())}).Run(t.Context(), r)
	}
	answers := make(chan Answer, 3)
	for i := range 3 {
		go func() {
			var a Answer
			var err error
			for n := range erased {
				switch {
				case i < 2 && n > 0: // a sweep
				case i < 2:
					a, err = run(Request{})
				default:
					_, err = run(Request{UserID: fmt.Sprint("gone", n, "-0")})
				}
				if err != nil {
					t.Error(err)
				}
			}
			answers <- a
		}()
	}
	deleted := int64(0)
	for range 3 {
		deleted += (<-answers).Deleted
	}
	stop()
	c.judge(t)
	if deleted < stale-1_000 || deleted > 2*(stale+erased) { // users act on up to 1,000 of the items; both can find an item gone
		t.Errorf("two sweeps found %d items gone, want %d or somewhat more", deleted, stale+erased)
	}
	if left := c.scan(t, "expiresAt < :now OR begins_with(userId, :gone)", attributes{":now": dynamostore.Number(time.Now().Unix()), ":gone": dynamostore.Text("gone")}); len(left) > 0 {
		t.Errorf("%d items are left, such as %v", len(left), left[0])
	}
	c.unchanged(t, before)
}
