package explore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
)

// A subject is a policy to explore, with the live limits that replace it.
type subject struct {
	kinds    string   // of its limits
	text     []string // the policy in force, and those that replace it; the others likewise
	prefill  int64    // so that two actions more fit
	room     []string // the policy of a room that users act in
	dear     []string // the policy of the other tier, or of the other activity of a group if actions cost more there
	dearRoom []string // the room's policy for these
	hold     bool     // receipts are held

	numbered, inRoom string // the policies for which callers give numbers, so that they become those of text and dear, or of the room; empty: they give none
}

const two = 2 // the limit of most subjects

// subjects returns each kind with a limit of two, each kind with the highest
// limit that it takes and two actions left, and each pair of kinds. They come
// from the list of kinds, so a new kind takes part.
func subjects(t *testing.T) (single, large, several []subject) {
	t.Helper()
	for _, k := range policy.Kinds() {
		s := subject{kinds: k.Name, text: []string{text(k, two, 10), text(k, 1, 10), text(k, 4, 10)}}
		if _, err := policy.Parse(s.text[0]); err != nil {
			t.Fatalf("the kind %s needs a text with a limit of two: %v", k.Name, err)
		}
		single = append(single, s)
		for _, limit := range []int64{125, 100} {
			s := subject{kinds: k.Name, text: []string{text(k, limit, 10)}, prefill: limit - two}
			if p, err := policy.Parse(s.text[0]); err == nil && !p.Queues() { // which would begin with 123 places
				large = append(large, s)
				break
			}
		}
	}
	for i, k := range policy.Kinds() {
		for _, other := range policy.Kinds()[i:] {
			pair := func(n int64) string { return "a: " + text(k, n, 10) + ", b: " + text(other, n, 20) }
			s := subject{kinds: k.Name + " and " + other.Name, text: []string{pair(two), pair(1), pair(4)}}
			if _, err := policy.Parse(s.text[0]); err == nil { // a policy can have only one limit of some kinds
				several = append(several, s)
			}
		}
	}
	return single, large, several
}

// crossing returns the kinds whose items keep ids in another way when the limit
// is raised above 100.
func crossing() (subjects []subject) {
	for _, k := range policy.Kinds() {
		s := subject{kinds: k.Name, text: []string{text(k, 100, 10), text(k, 80, 10), text(k, 125, 10)}, prefill: 100 - two}
		if p, err := policy.Parse(s.text[2]); err == nil && !p.Queues() {
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// lasting returns the kinds that admit without a place, with a limit for half a
// minute.
func lasting() (subjects []subject) {
	for _, k := range policy.Kinds() {
		s := subject{kinds: k.Name, text: []string{text(k, two, 30)}}
		if !policy.Must(s.text[0]).Queues() {
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// midnight is the end of a day in Berlin, in ms after the edge.
const midnight = 2_400_000

// days returns a calendar limit, alone and beside a limit with windows.
func days() []subject {
	const day = "2/day in Europe/Berlin"
	return []subject{{kinds: "calendar", text: []string{day}}, {kinds: "calendar", text: []string{"a: " + day + ", b: 2/20s"}}}
}

// logs returns those whose slots can be renewed.
func logs(all []subject) (subjects []subject) {
	for _, s := range all {
		if p := policy.Must(s.text[0]); p.HasLog() && !p.Queues() {
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// slotless returns those that have no slots.
func slotless(all []subject) []subject {
	return slices.DeleteFunc(all, func(s subject) bool { return len(logs([]subject{s})) > 0 })
}

// costly returns a group for each kind that takes a cost, with a limit that two
// activities share, and another one beside it.
func costly() (subjects []subject) {
	for i, k := range policy.Kinds() {
		limits := func(cost string) string { return "a: " + text(k, 4, 10) + cost + ", b: bucket 4/20s" }
		s := subject{kinds: k.Name + " and bucket", text: []string{limits("")}, dear: []string{limits(" cost 2")}, prefill: int64(i % 2)}
		if _, err := policy.Parse(s.dear[0]); err == nil {
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// text returns a limit of a kind in so many seconds.
func text(k policy.Kind, limit int64, seconds int) string {
	s := fmt.Sprintf("%s %d/%ds", k.Name, limit, seconds)
	if k.Name == "lockout" {
		return s + " for 2s to 4s"
	}
	for _, example := range k.Examples {
		if policy.Must(example).Queues() && policy.Must(example).Rates()[0].Ahead > 0 {
			return s + " ahead 20s"
		}
	}
	return s
}
