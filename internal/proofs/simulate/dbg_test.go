package simulate_test

import "testing"

func TestDbg(t *testing.T) {
	s := play(t, configurations, *oneSeed, true)
	for _, a := range s.activities {
		for _, p := range a.Parts() {
			t.Logf("%s %s: %s tiers %v hold %v", a.Name, p.Name, p.Limit, p.Tiers, a.Hold)
		}
	}
	t.Log(s.violation)
}
