package prove

import (
	"slices"

	"github.com/cric-talk/guards/internal/proofs/findings"
)

// A Part is one proof.
type Part struct {
	Name    string
	Package string // the folder whose tests are the proof
	Test    string // the pattern of the tests, as for go test -run
	Server  bool   // the tests need DynamoDB Local and ElasticMQ

	// Sources are the folders with the code that the figures are about. If
	// that code changes, the figures are out of date.
	Sources []string
}

// Parts are all proofs, in the order of docs/reliability.md.
var Parts = []Part{
	{Name: "explore", Package: "internal/proofs/explore", Test: ".", Sources: findings.Decides},
	{Name: "simulate", Package: "internal/proofs/simulate", Test: ".", Sources: findings.Decides},
	{Name: "histories", Package: "internal/proofs/histories", Test: ".", Server: true, Sources: findings.Asks},
	{Name: "faults", Package: "internal/proofs/faults", Test: ".", Server: true, Sources: findings.Asks},
	{Name: "outage", Package: "internal/proofs/outage", Test: ".", Server: true, Sources: findings.Asks},
	{Name: "cleanup", Package: "internal/cleanup", Test: "Killed", Server: true, Sources: []string{"internal/cleanup", "internal/table"}},
	{Name: "fuzz", Package: "internal/proofs/fuzz", Test: ".", Sources: append(slices.Clone(findings.Asks), "internal/input", "internal/live", "internal/pagefile")},
	{Name: "planted", Package: "internal/proofs/planted", Test: ".", Server: true, Sources: findings.Asks},
}

// Select returns the parts with these names, or all parts if there are none.
func Select(names []string) (parts []Part, err error) {
	if len(names) == 0 {
		return Parts, nil
	}
	for _, name := range names {
		if _, err := page.Part(name); err != nil {
			return nil, err
		}
		parts = append(parts, Parts[slices.IndexFunc(Parts, func(p Part) bool { return p.Name == name })])
	}
	return parts, nil
}
