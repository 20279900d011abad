package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
)

// Figures are the figures of one limit. Its name is empty if the activity has
// only one.
type figures = guards.Figures

// A slot is what a log counts since one moment. Actions of the same millisecond are
// alike, so they are one slot with a count.
type slot struct {
	At        int64 `json:"at"`        // Unix milliseconds: the receipt of the actions
	HeldUntil int64 `json:"heldUntil"` // when they stop counting, unless they are renewed
	Count     int64 `json:"count"`     // how much of the log they take: of a log without a cost, the actions
}

// instant returns a time of a slot as --at takes it.
func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// logOf returns the log among the limits of p as a policy of its own without a cost, so
// that each of its slots is an action. It returns false if p has no log.
func logOf(p policy.Policy) (policy.Policy, bool) {
	for i, one := range p.Each() {
		if !one.HasLog() {
			continue
		}
		text, _, _ := strings.Cut(one.String(), " cost ") // the last option
		if name := p.Rates()[i].Name; name != "" {
			text = name + ": " + text
		}
		log, err := policy.Parse(text)
		return log, err == nil
	}
	return policy.Policy{}, false
}

// slotsOf returns the open slots of the log of p, the oldest first. Figures tell only
// until when the newest slot is held. So slotsOf takes the newest slot away, again
// and again, until no slot is left.
func slotsOf(p policy.Policy, now int64, s policy.State) (slots []slot) {
	log, ok := logOf(p)
	if !ok {
		return nil
	}
	for r := log.Read(now, 0, s); r.Used > 0; r = log.Read(now, 0, s) {
		newest := slot{At: r.ResetAt - log.HeldUntil(0), HeldUntil: r.ResetAt}
		var freed policy.Update
		for {
			u, ok := log.Free(max(now, newest.At), newest.At, newest.Count+1, s)
			if !ok {
				break
			}
			freed, newest.Count = u, newest.Count+1
		}
		if newest.Count == 0 { // no log has written this
			break
		}
		slots, s = append(slots, newest), freed.Apply(s)
	}
	slices.Reverse(slots)
	return slots
}

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
