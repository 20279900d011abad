// Package outage_test shows what an outage of the table costs, and holds the
// shipped code to what docs/outages.md promises.
//
//   - In virtual time, the limiter is configured as in production. It spends three
//     hours without the table, and an hour when few requests get through. One key
//     is throttled beside others.
//   - In real time, the guard's binary loses its table and gets it back,
//     or has one that answers late.
//
// The bounds that a test asserts are counts, and times of a virtual clock. Times
// of the real clock are only reported.
package outage_test

import (
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
)

// figures are the rows of the tables that the page shows.
type figures struct{ hours, alone, hotKey, flapping, flapped, real, slow [][]string }

func TestAnOutageIsBounded(t *testing.T) {
	prove.Explain(t, "outage")
	var f figures
	t.Run("a real table is lost", func(t *testing.T) { realOutages(t, &f) })
	t.Run("a real table is slow", func(t *testing.T) { slowTables(t, &f) })
	t.Run("three hours", func(t *testing.T) { hours(t, &f) })
	t.Run("one throttled key", func(t *testing.T) { hotKey(t, &f) })
	t.Run("few requests get through", func(t *testing.T) { flapping(t, &f) })
	aloneHead := []string{"limit"}
	for _, failure := range failures {
		aloneHead = append(aloneHead, failure.name)
	}
	result := findings.Result{
		Seed: seed,
		Tables: []findings.Table{
			{Title: "A simulated outage", Head: hoursHead, Rows: f.hours},
			{Title: "The most that one instance admitted alone at once, of what the limit allows", Head: aloneHead, Rows: f.alone},
			{Title: "One throttled key beside others", Head: hotKeyHead, Rows: f.hotKey},
			{Title: "A real outage: the posts-guard's binary and DynamoDB Local", Head: realHead, Rows: f.real},
			{Title: "A slow table: the posts-guard's binary and DynamoDB Local", Head: slowHead, Rows: f.slow},
			{Title: "For an hour, few requests get through", Head: flappingHead, Rows: f.flapping},
			{Title: "The most that counted at once in these hours, of what the limit allows", Head: flappedHead, Rows: f.flapped},
		},
	}
	if t.Failed() {
		return
	}
	if prove.Long() && len(f.real) == 0 {
		t.Fatal("the real outage was skipped, want it in the proof")
	}
	prove.Save(t, "outage", result)
}
