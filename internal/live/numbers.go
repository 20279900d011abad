package live

import "github.com/cric-talk/guards/internal/policy"

// with returns the limit p of a part with the caller's numbers. A granted tier wins over them.
func (c Query) with(subject, granted string, p policy.Policy) policy.Policy {
	if len(c.Numbers) == 0 || granted != "" {
		return p
	}
	return p.With(func(limit string) (int64, bool) {
		n, ok := c.Numbers[policy.FullName(c.Activity.Name, subject, limit)]
		if only, given := c.Numbers[""]; given && subject == "" {
			return only, true
		}
		return n, ok
	})
}
