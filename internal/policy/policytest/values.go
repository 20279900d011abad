package policytest

import "github.com/cric-talk/guards/internal/policy"

// Values are the values of a state by name.
type Values map[string]int64

// State returns the state that has v.
func (v Values) State() policy.State {
	s := make(policy.State, 0, len(v))
	for name, value := range v {
		s = append(s, policy.Attr{Name: name, Value: value})
	}
	s.Sort()
	return s
}
