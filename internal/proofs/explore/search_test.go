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
	worlds := &set[packed]{numbers: map[packed]uint32{}}
	worlds.number(x.pack(&first))
	came := []edge{{}} // to each world
	var moves []move
	var after world
	for from := uint32(0); int(from) < len(came); from++ {
		before := x.unpack(worlds.at(from))
		moves = x.moves(moves[:0], &before)
		for _, m := range moves {
			x.transitions++
			after = before
			if err := x.step(&after, m); err != nil {
				way := []move{m}
				for n := from; n != 0; n = came[n].from {
					way = append(way, came[n].move)
				}
				slices.Reverse(way)
				return &found{x.system, x.timeline(way), err}, nil
			}
			x.forget(&after)
			if n := worlds.number(x.pack(&after)); int(n) == len(came) { // it is new
				came = append(came, edge{from, m})
			}
			if len(came) > most {
				return nil, fmt.Errorf("more than %d states: %s", most, x.system)
			}
		}
	}
	x.states = len(came)
	return nil, nil
}
