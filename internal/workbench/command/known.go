package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/input"
)

// known returns nil if a name is one of names. Otherwise it returns an error
// that suggests a name, and advice that mentions --force. Kind describes
// the names, such as "tier of create_post".
func known(flag, name string, names []string, kind string) error {
	if slices.Contains(names, name) {
		return nil
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	problem := fmt.Sprintf("is %s, and there is no %s", input.Show(name), kind)
	if len(names) > 0 {
		problem = fmt.Sprintf("is %s, want a %s: %s", input.Show(name), kind, strings.Join(names, ", "))
		if meant, ok := nearest(strings.ToLower(name), names); ok {
			problem = fmt.Sprintf("is %s, did you mean %q?", input.Show(name), meant)
		}
	}
	return hint{
		error:  &input.ValidationError{Field: flag, Problem: problem},
		advice: "give --force to use it anyway",
	}
}
