package command

import (
	"testing"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// The names are the same each time, and a limit with a cost is doubled once.
func TestExamplesOfAProject(t *testing.T) {
	guards := limits.Guards{{Name: "exports-guard", Message: "m", Activities: []limits.Activity{
		{Name: "see_it", Unlimited: true},
		{Name: "export", Limit: policy.Must("100/1h cost 5"), Tiers: limits.Tiers{
			"pro": policy.Must("200/1h cost 5"), "max": policy.Must("400/1h cost 5"), "free": policy.Must("50/1h cost 5"),
		}},
	}}}
	for range 20 {
		names := examples(guards)
		for word, want := range map[string]string{
			"{activity}": "export", "{guard}": "exports-guard", "{limit}": `"200/1h cost 5"`,
			"{tiered}": "export", "{tier}": "free", "{tierlimit}": `"100/1h cost 5"`,
		} {
			if names[word] != want {
				t.Fatalf("%s is %s, want %s", word, names[word], want)
			}
		}
	}
}
