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
}
