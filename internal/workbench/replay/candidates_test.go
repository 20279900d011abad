package replay_test

import (
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	. "github.com/cric-talk/guards/internal/workbench/replay"
)

// The search relies on this to know which limits it need not try.
func TestHigherLimitsLetMorePassAtOnce(t *testing.T) {
	texts := []string{"bucket 4/60ms burst 3", "bucket 4/60ms burst 9"}
	for _, k := range policy.Kinds() {
		texts = append(texts, policytest.Text(k, "4/1m"), policytest.Text(k, "10/1m"))
		if k.Name != "lockout" { // which has no short window
			texts = append(texts, k.Name+" 4/60ms")
		}
	}
	for _, text := range texts {
		p, gap := policy.Must(text), false
		low := p.Rates()[0]
		for n := int64(1); n <= 100; n++ {
			limit, err := WithLimit(p, n)
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

func TestWithLimit(t *testing.T) {
	for _, tt := range []struct {
		p    string
		n    int64
		want string // empty: an error
	}{
		{"10/1m cost 2", 7, "14/1m cost 2"},
		{"log 100/12h", 1, "log 1/12h"},
		{"bucket 10/1m burst 15 keep 1h", 1, "bucket 1/1m burst 2 keep 1h"},
		{"reservoir 10/10s ahead 15m", 7, "reservoir 7/10s ahead 15m"},
		{"writes: 10/1m", 12, "writes: 12/1m"},
		{"bucket 1/1m burst 500000", 3, ""},
		{"10/1m", 0, ""},
		{"10/1m", 1_000_001, ""},
	} {
		got, err := WithLimit(policy.Must(tt.p), tt.n)
		if got.String() != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s with the limit %d is %q, %v, want %q", tt.p, tt.n, got, err, tt.want)
		}
	}
}
