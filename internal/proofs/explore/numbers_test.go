package explore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
)

// In some systems, callers give numbers for limits with a max. The limiter gets the policy that
// they give the numbers for, with these numbers. The judge goes by the text that it becomes.

// given returns the policy numbered with the numbers of p, and so p. It is p itself if callers
// give no numbers.
func given(numbered, p policy.Policy) policy.Policy {
	if numbered.IsZero() {
		return p
	}
	return numbered.With(func(limit string) (int64, bool) {
		for _, r := range p.Rates() {
			if r.Name == limit {
				return r.Limit, true
			}
		}
		return 0, false
	})
}

func TestGiven(t *testing.T) {
	for _, s := range slices.Concat(numbers(), numbersAcross(), numbersInRooms()) {
		for _, text := range slices.Concat(s.text, s.dear) {
			if p := policy.Must(text); !given(optional(s.numbered), p).Equal(p) {
				t.Errorf("%s with the numbers of %s is %s", s.numbered, p, given(optional(s.numbered), p))
			}
		}
		for _, text := range s.room {
			if p := policy.Must(text); !given(optional(s.inRoom), p).Equal(p) {
				t.Errorf("%s with the numbers of %s is %s", s.inRoom, p, given(optional(s.inRoom), p))
			}
		}
	}
}

// optional returns the policy of a text, which can be empty.
func optional(text string) (p policy.Policy) {
	if text != "" {
		p = policy.Must(text)
	}
	return p
}

// scalable returns the kinds that take a number of up to most, each as a text without its
// number.
func scalable(most int) (texts []string) {
	for _, k := range policy.Kinds() {
		text := fmt.Sprint(k.Name, " %d/20s max ", most)
		if _, err := policy.Parse(live(text, two)[0]); err == nil {
			texts = append(texts, text)
		}
	}
	return texts
}

// numbers returns limits of which callers give numbers. Every other caller gives a higher one
// than the first. The numbers change in some plans, and then every second caller gives a lower
// one.
func numbers() (subjects []subject) {
	for _, text := range scalable(5) {
		subjects = append(subjects, subject{kinds: "number of a caller", text: live(text, two, 1, 4), dear: live(text, 4, two, 1), numbered: live(text, 5)[0], prefill: 1})
	}
	const several = "a: %d/20s max 5, b: log %d/10s max 5"
	subjects = append(subjects, subject{kinds: "numbers of a caller", text: live(several, two, 1, 4), dear: live(several, 4, two, 1), numbered: live(several, 5)[0], prefill: 1})
	const group = "a: %d/20s max 5"
	return append(subjects, subject{kinds: "numbers in a group", text: live(group, two, 1, 4), dear: live(group, 4, two, 4), numbered: live(group, 1)[0], prefill: 1})
}

// numbersAcross returns limits whose numbers are up to 100 and above it.
func numbersAcross() (subjects []subject) {
	for _, text := range scalable(125) {
		subjects = append(subjects, subject{kinds: "number of a caller", text: live(text, 100, 80, 125), numbered: live(text, 5)[0], prefill: 100 - two})
	}
	return subjects
}

// numbersInRooms returns users and rooms that have numbers, both or one of them.
func numbersInRooms() (subjects []subject) {
	kinds := scalable(5)
	for i, text := range kinds {
		s := subject{kinds: "numbers in a room", text: live(text, 4, two, 4), room: live(kinds[(i+1)%len(kinds)], two, 1, 4), inRoom: live(kinds[(i+1)%len(kinds)], 5)[0]}
		if i%2 == 0 {
			s.dear, s.numbered = live(text, two, 4, 1), live(text, 5)[0]
		}
		subjects = append(subjects, s)
	}
	return subjects
}
