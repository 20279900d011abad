package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

// A subject is a policy that the simulation runs, with the limits that tiers and
// operators give it, or a page of limits that it draws.
type subject struct {
	name  string
	texts []string // a run takes one of them
	draw  func(*sim) []limits.Activity
}

// subjects returns one subject for each kind, and one for each pair of kinds. A
// new kind takes part without being named here.
func subjects() (list []subject) {
	kinds := policy.Kinds()
	for i, k := range kinds {
		list = append(list, subject{name: k.Name, texts: sizes(k)})
		for _, other := range kinds[i:] {
			text := fmt.Sprintf("a: %s, b: %s", small(k, "5/10s"), small(other, "9/20s"))
			if _, err := policy.Parse(text); err == nil { // a policy can have only one limit of some kinds
				list = append(list, subject{name: k.Name + " and " + other.Name, texts: []string{text, withMax(text, 15)}})
			}
		}
	}
	for _, all := range policytest.Together(func(k policy.Kind) string {
		i := slices.IndexFunc(kinds, func(other policy.Kind) bool { return other.Name == k.Name })
		return small(k, fmt.Sprintf("%d/%ds", 4+i, 10+10*(i%2)))
	}) {
		rates := policy.Must(all).Rates()
		list = append(list, subject{name: fmt.Sprintf("%d kinds, the last one %s", len(rates), rates[len(rates)-1].Kind), texts: []string{all}})
	}
	return list
}

// sizes returns the text forms of a kind: its examples with a window of at least
// a second, and small ones, so that a run fills many windows. Clocks here differ by
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
		for _, option := range []string{" burst 3", " ahead 1m", " ahead 15m", " cost 2", " for 1s to 5s", " for 30s", " for 8s to 1m", " max 12", " burst 3 max 12", " cost 2 max 101"} {
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
		if valid(text + " ahead 1m") {
			return text + " ahead 1m"
		}
		return text
	}
	if text := k.Name + " " + numbers + " for 8s to 20s"; valid(text) {
		return text
	}
	return k.Examples[0]
}

// withMax returns limits with a max of most. Kinds without a max stay as they are.
func withMax(text string, most int) string {
	rates := policy.Must(text).Rates()
	for i := range rates {
		if with := fmt.Sprint(rates[i].String(), " max ", most); valid(with) {
			rates[i].Max = int64(most)
		}
	}
	return strings.Join(texts(rates), ", ")
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
		func(r *policy.Rate) { r.Lock *= 3; r.MaxLock = max(r.Lock, r.MaxLock) },
		func(r *policy.Rate) { r.Lock = min(r.Lock, max(time.Second, r.Lock/4).Truncate(time.Millisecond)) },
		func(r *policy.Rate) { r.MaxLock *= 4 },
		func(r *policy.Rate) { r.MaxLock = r.Lock },
		func(r *policy.Rate) { r.Ahead /= 2 },
		func(r *policy.Rate) { r.Ahead *= 40 },
		func(r *policy.Rate) { r.Prepaid = false },
		func(r *policy.Rate) { r.Max *= 2 },
		func(r *policy.Rate) { r.Max = min(r.Max, r.Limit) },
	}
	seen := map[string]bool{p.String(): true}
	for _, change := range change {
		rates := p.Rates()
		for i := range rates {
			if change(&rates[i]); rates[i].Max > 0 {
				rates[i].Max = max(rates[i].Max, rates[i].Limit)
			}
		}
		q, err := parse(rates)
		if err == nil {
			q, err = q.WithDefaults(p)
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
