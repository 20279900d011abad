package policytest

import (
	"fmt"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
)

// Combined returns text forms with small limits: each kind, each pair of kinds
// that a policy can have, and all kinds at once. For example, with the rates
// 3/9s and 4/18s, it returns "bucket 3/9s" and "a: log 3/9s, b: bucket 4/18s".
func Combined(rate, other string) (texts []string) {
	var all []string
	for i, k := range policy.Kinds() {
		texts = append(texts, k.Name+" "+rate)
		for _, second := range policy.Kinds()[i:] {
			pair := fmt.Sprintf("a: %s %s, b: %s %s", k.Name, rate, second.Name, other)
			if _, err := policy.Parse(pair); err == nil {
				texts = append(texts, pair)
			}
		}
		all = append(all, fmt.Sprintf("%c: %s %s", 'a'+i, k.Name, rate))
	}
	return append(texts, strings.Join(all, ", "))
}
