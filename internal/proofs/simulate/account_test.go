package simulate_test

import (
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
)

// terms are a policy with its numbers. Reading the numbers once keeps runs cheap.
type terms struct {
	policy.Policy

	text    string
	numbers *oracle.Terms
}

func newTerms(p policy.Policy) *terms {
	return &terms{Policy: p, text: p.String(), numbers: oracle.NewTerms(p.Rates())}
}

// newAccount returns an account of the limits without any counts.
func newAccount(limits []*terms) *oracle.Account {
	var list []*oracle.Terms
	for _, t := range limits {
		list = append(list, t.numbers)
	}
	return oracle.NewAccount(list)
}
