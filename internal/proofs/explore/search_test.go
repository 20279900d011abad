package explore

import (
	"fmt"
	"slices"
	"strings"
)

// A found is a violation of a property, with what leads to it.
type found struct {
	system   *system
	timeline []string
	err      error
}

// Error returns the violation, its system, and the timeline.
func (f *found) Error() string {
	return fmt.Sprintf("%v\n%s\n%s", f.err, f.system, strings.Join(f.timeline, "\n"))
}

// explore visits every state of the system, the nearest first. So the first
// violation that it finds has the fewest moves.
func (x *explorer) explore(most int) (*found, error) {
	first, err := x.begin()
	if err != nil {
		return nil, err
	}
	type edge struct {
		from uint32
		move move
	}
	seen := map[world]struct{}{first: {}}
	came := []edge{{}}
	layer, next := []world{first}, []world(nil)
	numbers, nextNumbers := []uint32{0}, []uint32(nil)
	var moves []move
	var after world
	for len(layer) > 0 {
		for i := range layer {
			moves = x.moves(moves[:0], &layer[i])
			for _, m := range moves {
				x.transitions++
				after = layer[i]
				if err := x.step(&after, m); err != nil {
					way := []move{m}
					for n := numbers[i]; n != 0; n = came[n].from {
						way = append(way, came[n].move)
					}
					slices.Reverse(way)
					return &found{x.system, x.timeline(way), err}, nil
				}
				x.forget(&after)
				if _, ok := seen[after]; ok {
					continue
				}
				if len(came) >= most {
					return nil, fmt.Errorf("more than %d states: %s", most, x.system)
				}
				seen[after] = struct{}{}
				nextNumbers = append(nextNumbers, uint32(len(came)))
				came = append(came, edge{numbers[i], m})
				next = append(next, after)
			}
		}
		layer, next = next, layer[:0]
		numbers, nextNumbers = nextNumbers, numbers[:0]
	}
	x.states = len(came)
	return nil, nil
}
