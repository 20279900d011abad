package replay_test

import (
	"testing"

	"github.com/cric-talk/guards/internal/policy"
)

// The search relies on this to know which limits it need not try.
func TestHigherLimitsLetMorePassAtOnce(t *testing.T) {
	texts := []string{"bucket 4/60ms burst 3", "bucket 4/60ms burst 9"}
	for _, k := range policy.Kinds() {
		texts = append(texts, k.Name+" 4/60ms", k.Name+" 10/1m")
	}
	for _, text := range texts {
		p, gap := policy.Must(text), false
		low := p.Rates()[0]
		for n := int64(1); n <= 100; n++ {
			limit, err := p.WithLimit(n)
			switch {
			case err != nil:
				gap = true
			case limit.Read(0, 0, nil).Limit*low.Limit < n*p.Read(0, 0, nil).Limit:
				t.Errorf("%s lets less pass at once, in proportion, than %s", limit, p)
			case gap && n > low.Window.Milliseconds():
				t.Errorf("%s is above a gap and has more than one action a millisecond", limit)
			}
		}
	}
}
