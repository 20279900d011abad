// Package giveback tries every order of events of one request that is sent two or three
// times, in a model of what a user, a room and a tenant count of it. It is about one rule:
// what a refused attempt gives back, although another attempt may rely on it.
//
//   - An attempt asks all parts, one after the other. Once the last part has admitted it, the
//     attempt marks each part that already had the request, from the last part to the first.
//   - If a part refuses the mark, because it no longer has the request, the attempt counts the
//     request there again.
//   - A refused attempt gives back what its own writes have counted, except for a part with a mark.
//   - Only an attempt that has counted all parts itself has a receipt. With it, the app can release
//     the request. So no give-back is on its way that could remove what is counted afterwards.
//
// Then each part counts what was admitted. The model shows that this fails for every rule that
// differs in one point. Package explore tries the same with the real code and two parts.
package giveback

import (
	"fmt"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/prove"
)

// markLast is the rule of the limiter.
var markLast = rule{marks: true}

// What was admitted is counted in each part, once everything has arrived. If no answer is
// lost, a request that was always refused leaves nothing in the user's part.
func TestWhatWasAdmittedIsCounted(t *testing.T) {
	for _, y := range []system{
		{parts: 2, attempts: 2, moves: 4, losses: 1},
		{parts: 2, attempts: 3, moves: 4},
		{parts: 2, attempts: 3, moves: 2, losses: 1},
		{parts: 3, attempts: 2, moves: 4},
		{parts: 3, attempts: 2, moves: 3, losses: 1},
		{parts: 3, attempts: 3, moves: 3},
		{parts: 3, attempts: prove.Bound(2, 3), moves: 2, losses: 1},
		{parts: 2, attempts: 3, moves: 2, losses: 1, release: true},
		{parts: 3, attempts: 3, moves: 3, release: true},
	} {
		y.rule = markLast
		t.Run(y.String(), func(t *testing.T) {
			r := y.search()
			t.Log(r)
			if r.wrong > 0 {
				t.Errorf("what was admitted is not counted: %q", r.example)
			}
			if y.losses == 0 && r.user > 0 {
				t.Errorf("%d ends leave a refused request in the user's part", r.user)
			}
			if r.ends < 50 {
				t.Errorf("only %d ends", r.ends)
			}
		})
	}
}

// A rule that differs in one point is wrong in some order of events.
func TestOtherRulesAreWrong(t *testing.T) {
	for _, y := range []system{
		{rule: rule{name: "nothing is marked"}, parts: 2, attempts: 2, moves: 1},
		{rule: rule{name: "nothing is marked"}, parts: 3, attempts: 2, moves: 1},
		{rule: rule{name: "a give-back ignores marks", marks: true, blind: true}, parts: 2, attempts: 2, moves: 1},
		{rule: rule{name: "a refused mark does not count anew", marks: true, skips: true}, parts: 2, attempts: 2, moves: 1},
		{rule: rule{name: "what is found instead of counted anew is not marked", marks: true, trusts: true}, parts: 3, attempts: 3, moves: 3},
		{rule: rule{name: "what a repeat of its own write finds is its own", marks: true, claims: true}, parts: 2, attempts: 2, moves: 1, losses: 1},
		{rule: rule{name: "what was found is given back, too", marks: true, all: true}, parts: 2, attempts: 2, moves: 1},
		{rule: rule{name: "who found a part has a receipt, too", marks: true, dates: true}, parts: 2, attempts: 3, moves: 1, release: true},
	} {
		t.Run(y.name+", "+y.String(), func(t *testing.T) {
			r := y.search()
			t.Log(r)
			if t.Logf("%q", r.example); r.wrong == 0 {
				t.Error("the model does not find it")
			}
		})
	}
}

// If the first part is marked first, the mark of an attempt that another part refuses
// afterwards leaves a count in the user's part. So the user's part is marked last.
func TestTheUserIsMarkedLast(t *testing.T) {
	y := system{rule: markLast, parts: 3, attempts: 2, moves: 4}
	y.userFirst = true
	if r := y.search(); r.wrong > 0 || r.user == 0 {
		t.Errorf("%v, want none wrong and some left in the user's part", r)
	}
}

// A report is what a search found.
type report struct {
	states, ends int
	wrong        int      // ends with an admitted attempt that is not counted
	example      []string // the events that lead to the first of these
	refused      int      // ends with all attempts refused
	left, user   int      // of these, ends with a count left in any part, and in the user's part
}

func (r report) String() string {
	return fmt.Sprintf("%d states, %d ends, %d wrong; all refused in %d, of which %d leave a count, %d in the user's part", r.states, r.ends, r.wrong, r.refused, r.left, r.user)
}

func (y system) String() string {
	return fmt.Sprintf("%d parts, %d attempts, %d moves of others, %d lost answers, release %v", y.parts, y.attempts, y.moves, y.losses, y.release)
}

// search visits every state, the nearest first.
func (y system) search() (r report) {
	all, from := []state{y.begin()}, []int{0}
	seen := map[state]bool{all[0]: true}
	for at := 0; at < len(all); at++ {
		if s := all[at]; s.over() {
			r.ends++
			if !y.counted(s) {
				if r.wrong++; r.wrong == 1 {
					r.example = y.path(all, from, at)
				}
			}
			r.leaves(s)
		}
		y.next(all[at], func(_ string, s state) {
			if !seen[s] {
				seen[s] = true
				all, from = append(all, s), append(from, at)
			}
		})
	}
	r.states = len(all)
	return r
}

// path returns the events that lead to a state.
func (y system) path(all []state, from []int, to int) (events []string) {
	for ; to != 0; to = from[to] {
		found := ""
		y.next(all[from[to]], func(event string, s state) {
			if s == all[to] {
				found = event
			}
		})
		events = append([]string{found}, events...)
	}
	return events
}

// over reports whether all attempts have ended, and everything has arrived.
func (s state) over() bool {
	onTheWay := s.counts | s.marks
	for n, a := range s.attempts {
		if onTheWay |= a.back | s.backs[n]; !a.ended() {
			return false
		}
	}
	return onTheWay == 0
}

// counted reports whether each part counts what was admitted. A part that was decided from
// memory need not, and neither does an attempt that began before the app's release.
func (y system) counted(s state) bool {
	for n, a := range s.attempts {
		for i := range y.parts {
			if a.phase == admitted && !s.excused.has(n) && !a.outage.has(i) && !s.parts[i].counted {
				return false
			}
		}
	}
	return true
}

// leaves notes what a request that was always refused leaves at the end.
func (r *report) leaves(s state) {
	var left set
	for i, a := range s.attempts {
		if a.phase == admitted {
			return
		}
		if s.parts[i].counted {
			left |= 1 << i
		}
	}
	r.refused++
	if left != 0 {
		r.left++
	}
	if left.has(0) {
		r.user++
	}
}
