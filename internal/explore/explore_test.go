package explore

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	single, large, several := subjects(t)
	skews := []time.Duration{0, 2 * time.Second}
	_ = fmt.Sprint
	attempts, _ := strconv.Atoi(os.Getenv("ATTEMPTS"))
	set := func(y *system) { y.attempts = attempts }
	for _, p := range []plan{
		{name: "one limit", subjects: single, scenarios: append(core, rest...), instants: border, skews: skews, set: set},
		{name: "large", subjects: large, scenarios: core, instants: border, skews: skews, set: set},
		{name: "several", subjects: several, scenarios: core, instants: border, skews: skews, set: set},
		{name: "live", subjects: single, scenarios: core, instants: border[:1], skews: skews, live: true, set: set},
	} {
		begin := time.Now()
		states, trans, fails := 0, 0, 0
		for _, y := range p.systems() {
			x := newExplorer(y)
			f, err := x.explore(5_000_000)
			if err != nil {
				t.Error(err)
			}
			if f != nil {
				if fails++; fails < 12 {
					t.Error(f)
				}
			}
			states += x.states
			trans += x.transitions
		}
		t.Log(p.name, len(p.systems()), states, trans, time.Since(begin))
	}
}
