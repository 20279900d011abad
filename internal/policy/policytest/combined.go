package policytest

import (
	"fmt"

	"github.com/cric-talk/guards/internal/policy"
)

// Text returns the text form of a limit of this kind, such as bucket 3/9s for the rate 3/9s.
// The lock of a lockout lasts 8 s at first, and at most 20 s.
func Text(k policy.Kind, rate string) string {
	if k.Name == "lockout" {
		rate += " for 8s to 20s"
	}
	return k.Name + " " + rate
}

// Combined returns text forms with small limits: each kind, each pair of kinds that a
// policy can have, and the kinds together that can stand beside each other. For example,
// with the rates 3/9s and 4/18s, it returns "bucket 3/9s" and "a: log 3/9s, b: bucket 4/18s".
func Combined(rate, other string) (texts []string) {
	for i, k := range policy.Kinds() {
		texts = append(texts, Text(k, rate))
		for _, second := range policy.Kinds()[i:] {
			if pair := fmt.Sprintf("a: %s, b: %s", Text(k, rate), Text(second, other)); can(pair) {
				texts = append(texts, pair)
			}
		}
	}
	return append(texts, Together(func(k policy.Kind) string { return Text(k, rate) })...)
}
