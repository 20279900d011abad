package command

import (
	"fmt"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// leases reports whether the item that counts a for this key can be prepaid in part. It is if
// the limit in force is prepaid, or the limit of another activity of the group. The item then
// counts what instances hold and have not handed out, and does not tell how much that is.
func leases(guards limits.Guards, changed *live.Limits, a limits.Activity, key, tier string, at time.Time) bool {
	return slices.ContainsFunc(countedIn(guards, itemOf(a)), func(other limits.Activity) bool {
		return other.Has(subjectOf(key)) && termsOf(changed, other, key, tier, at).Limit.Prepaid()
	})
}

// used returns a count and its limit for people.
func used(count, limit int64, prepaid bool) string {
	if prepaid {
		return fmt.Sprintf("%d/%d prepaid", count, limit)
	}
	return fmt.Sprintf("%d/%d", count, limit)
}

// explain adds a line of text below the table, if a row needs it.
func (t *textTable) explain(needed bool, line string) {
	if needed {
		t.row()
		t.row(line)
	}
}

// countsLeases explains a count of a prepaid limit.
const countsLeases = "prepaid: instances can hold some of what is used, and have not handed it out yet"

// prepaid reports whether the limit of a user or of a subject is prepaid.
func prepaid(a limits.Activity) bool {
	return slices.ContainsFunc(a.Parts(), func(s limits.Subject) bool { return s.Limit.Prepaid() })
}
