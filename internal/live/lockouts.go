package live

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// ErrGroupLockout is part of the problem that an activity of a group would have another lockout
// than the group.
var ErrGroupLockout = errors.New("change it for the whole group")

// keepsLockouts returns an [ErrGroupLockout] if p has another lockout than the group has now. A
// lock of one activity is a lock of all, so their lockouts change together.
func (c *change) keepsLockouts(code limits.Activity, part limits.Subject, tier string, p policy.Policy) error {
	if code.Group == "" {
		return nil
	}
	if _, ok := part.Tiers[tier]; !ok { // it goes by the ordinary limit
		tier = ""
	}
	for _, r := range part.For(tier).Rates() {
		if r.Lock == 0 {
			continue
		}
		ofGroup := Target{Group: code.Group, Subject: part.Name, Limit: r.Name}.String()
		want, err := policy.Parse(cmp.Or(c.Activities[ofGroup].Text(tier), part.For(tier).Part(r.Name)))
		if err == nil && p.Part(r.Name) != want.String() {
			return fmt.Errorf("limit %q is %s, want %s; %w, as %s", r.Name, p.Part(r.Name), want, ErrGroupLockout, ofGroup)
		}
	}
	return nil
}
