package oracle_test

import (
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
)

// Every kind of policy needs a model, or no proof could judge it.
func TestEachKindHasAModel(t *testing.T) {
	for _, k := range policy.Kinds() {
		if _, err := oracle.New(policy.Must(k.Examples[0]).Rates()[0]); err != nil {
			t.Error(err)
		}
	}
	_, err := oracle.New(policy.Rate{Kind: "toggle"})
	want := `there is no model of the kind "toggle", so no proof can judge it: write one in internal/proofs/oracle from what docs/policies.md promises`
	if err == nil || err.Error() != want {
		t.Errorf("New = %v, want %q", err, want)
	}
}
