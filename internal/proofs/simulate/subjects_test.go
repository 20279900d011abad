package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// A subject is a policy that the simulation runs, with the limits that tiers and
// operators give it. A text with a semicolon has the limits of two activities of one
// group.
type subject struct {
	name  string
	texts []string                     // a run takes one of them
	hold  bool                         // receipts and ids serve for 15 minutes
	draw  func(*sim) []limits.Activity // or it draws them
}

// inGroups are the limits of two activities that count in one item.
var inGroups = []subject{
	{name: "group of fixed and log", texts: []string{
		"a: 10/10s, b: log 9/20s; a: 12/10s cost 3, b: log 8/20s cost 2",
		"a: 5/10s, b: log 4/20s; a: 9/10s cost 2",
		"b: log 7/30s cost 2; c: 4/10s",
	}},
	{name: "group of fixed", texts: []string{
		"a: 10/10s, b: 40/1m; a: 12/10s cost 3",
		"a: 8/20s; a: 10/20s",
		"a: 5/10s; b: 9/10m cost 2",
	}},
	{name: "group of buckets", texts: []string{
		"a: bucket 5/10s burst 9; a: bucket 5/10s burst 9 cost 3",
		"a: bucket 5/20s; a: bucket 10/10s burst 12 cost 2, b: 9/30s",
		"a: bucket 20/10s; a: bucket 6/30m",
	}},
	{name: "group of sliding", texts: []string{
		"a: sliding 9/20s; a: sliding 12/20s cost 5",
		"a: sliding 20/10s cost 2; a: sliding 18/10s cost 3, b: sliding 9/30s",
	}},
}

// held are limits whose receipts serve for 15 minutes. Their windows are long enough.
var held = subject{name: "hold", hold: true, texts: []string{
	"20/1h", "150/1h", "101/30m", "sliding 20/1h", "sliding 30/20m cost 3", "bucket 20/1h burst 9", "bucket 30/30m cost 4", "log 9/30m",
	"a: 20/1h, b: log 9/40m", "a: 9/20m, b: sliding 30/1h cost 2", "a: bucket 10/40m, b: log 12/20m cost 2",
	"a: 20/1h, b: log 9/20m; a: 40/1h cost 3", "a: sliding 30/1h; a: sliding 30/1h cost 4", "a: bucket 12/1h; a: bucket 20/1h cost 3, b: log 9/30m",
}}

// subjects returns one subject for each kind, and one for each pair of kinds. A
// new kind takes part without being named here. Then come groups and Hold.
func subjects() (list []subject) {
	kinds := policy.Kinds()
	for i, k := range kinds {
		list = append(list, subject{name: k.Name, texts: sizes(k)})
		for _, other := range kinds[i:] {
			text := fmt.Sprintf("a: %s, b: %s", small(k, "5/10s"), small(other, "9/20s"))
			if _, err := policy.Parse(text); err == nil { // a policy can have only one limit of some kinds
				list = append(list, subject{name: k.Name + " and " + other.Name, texts: []string{text}})
			}
		}
	}
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = string(rune('a'+i)) + ": " + small(k, fmt.Sprintf("%d/%ds", 4+i, 10+10*(i%2)))
	}
	list = append(list, subject{name: "all kinds", texts: []string{strings.Join(all, ", ")}})
	return append(append(list, inGroups...), held, together, prepaids)
}

// sizes returns the text forms of a kind: its examples with a window of at least
// a second, and small ones of which a run fills many windows. Clocks here differ by
// seconds, so a window of milliseconds shows nothing.
func sizes(k policy.Kind) (texts []string) {
	for _, text := range k.Examples {
		if policy.Must(text).Rates()[0].Window >= time.Second {
			texts = append(texts, text)
		}
	}
	for _, numbers := range []string{"5/10s", "2/30s", "101/20s", "1/5s"} {
		if text := k.Name + " " + numbers; valid(text) {
			texts = append(texts, text, text) // twice: more often than the examples
		}
		for _, option := range []string{" burst 3", " ahead 1m", " ahead 15m", " cost 2"} {
			if text := k.Name + " " + numbers + option; valid(text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// small returns a limit of kind k with these numbers, or else its first example.
func small(k policy.Kind, numbers string) string {
	if text := k.Name + " " + numbers; valid(text) {
		for _, option := range []string{" ahead 1m"} {
			if valid(text + option) {
				return text + option
			}
		}
		return text
	}
	return k.Examples[0]
}

func valid(text string) bool {
	_, err := policy.Parse(text)
	return err == nil
}

// variations returns other limits that can share a count with p: higher, lower
// and, for a bucket, slower and with another burst.
func variations(p policy.Policy) (list []policy.Policy) {
	change := []func(r *policy.Rate){
		func(r *policy.Rate) { r.Limit *= 2 },
		func(r *policy.Rate) { r.Limit = (r.Limit + 1) / 2 },
		func(r *policy.Rate) { r.Limit++ },
		func(r *policy.Rate) { r.Limit = max(1, r.Limit-1) },
		func(r *policy.Rate) { r.Limit = 101 },
		func(r *policy.Rate) { r.Limit = 100 },
		func(r *policy.Rate) { r.Limit, r.Burst = 1, min(r.Burst, 2) },
		func(r *policy.Rate) { r.Window, r.Unit, r.Burst = 7*r.Window, "", 2*r.Burst },
		func(r *policy.Rate) { r.Ahead /= 2 },
		func(r *policy.Rate) { r.Prepaid = false },
	}
	seen := map[string]bool{p.String(): true}
	for _, change := range change {
		rates := p.Rates()
		for i := range rates {
			change(&rates[i])
		}
		q, err := parse(rates)
		if err == nil {
			q, err = q.OptionsOf(p)
		}
		if err != nil || seen[q.String()] {
			continue
		}
		seen[q.String()] = true
		list = append(list, q)
	}
	return list
}

// reversed returns the limits of p in another order, which share a count with p.
func reversed(p policy.Policy) policy.Policy {
	rates := p.Rates()
	slices.Reverse(rates)
	q, _ := parse(rates)
	return q
}

// texts writes rates in the text form.
func texts(rates []policy.Rate) (list []string) {
	for _, r := range rates {
		list = append(list, r.String())
	}
	return list
}

// parse makes a policy of rates.
func parse(rates []policy.Rate) (policy.Policy, error) {
	return policy.Parse(strings.Join(texts(rates), ", "))
}
