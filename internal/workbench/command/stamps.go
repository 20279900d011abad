package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
)

// The history describes a change in words, which the functions below write and
// read.

// setWords describes a change of an activity. Empty parts are left out.
func setWords(activity, limit, tier, mode string) string {
	words := "set " + activity
	if limit != "" {
		words += " " + limit
	}
	if tier != "" {
		words += " for tier " + tier
	}
	if mode != "" {
		words += " to mode " + mode
	}
	return words
}

// unsetWords describes that a change of an activity, or of one of its tiers, was
// undone.
func unsetWords(activity, tier string) string {
	words := "unset " + activity
	if tier != "" {
		words += " for tier " + tier
	}
	return words
}

// grantWords describes a grant. The history must not name the user.
func grantWords(g live.Grant) string {
	return fmt.Sprintf("grant a user %s%s until %s", g.Role, g.Tier, g.Until.Format(time.RFC3339))
}

// grantedWhat returns what a grant gives, in words.
func grantedWhat(g live.Grant) string {
	what := "the role " + g.Role
	if g.Role == "" {
		what = "the tier " + g.Tier
	}
	return what + " until " + g.Until.Format(time.RFC3339)
}

// A stamp tells who set something, and when. The zero stamp means that
// the history does not tell.
type stamp struct {
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitzero"`
}

func stampOf(c live.Change) stamp { return stamp{c.At.UTC(), c.By} }

// cells returns the stamp for a table.
func (s stamp) cells() []string {
	if s.Since.IsZero() {
		return []string{"", ""}
	}
	return []string{s.Since.Format(time.RFC3339), s.By}
}

// limitStamp returns who set the limit of an activity or of one of its tiers. If
// the same limit was set again, the first time counts. An edit by hand leaves no
// trace in the history. So if the newest change set another limit, nobody can
// tell who set this one, and the stamp is zero.
func limitStamp(history []live.Change, activity, tier, limit string) stamp {
	return firstOf(history, activity, tier, func(text, t, _ string) (about, same bool) {
		p, err := policy.Parse(text)
		return text != "" && t == tier, err == nil && p.String() == limit
	})
}

// modeStamp returns who set the mode of an activity, as limitStamp does.
func modeStamp(history []live.Change, activity, mode string) stamp {
	return firstOf(history, activity, "", func(_, _, m string) (about, same bool) { return m != "", m == mode })
}

// firstOf goes from the newest change to the oldest, and skips changes about
// something else. It stops at an undo, and at a change for which same is false.
// It returns the stamp of the oldest change before the stop for which same is
// true, or the zero stamp.
func firstOf(history []live.Change, activity, tier string, compare func(limit, tier, mode string) (about, same bool)) (first stamp) {
	for _, c := range history {
		if c.What == unsetWords(activity, "") || c.What == unsetWords(activity, tier) {
			break
		}
		limit, t, mode, ok := setParts(c.What, activity)
		if !ok {
			continue
		}
		about, same := compare(limit, t, mode)
		switch {
		case about && same:
			first = stampOf(c)
		case about:
			return first
		}
	}
	return first
}

// setParts reads what setWords wrote about an activity.
func setParts(words, activity string) (limit, tier, mode string, ok bool) {
	rest, ok := strings.CutPrefix(words, "set "+activity+" ")
	if !ok {
		return "", "", "", false
	}
	rest, mode, _ = strings.Cut(" "+rest, " to mode ")
	limit, tier, _ = strings.Cut(rest, " for tier ")
	return strings.TrimSpace(limit), tier, mode, true
}

// grantStamps returns who gave each grant. Grants and the history have the same
// order, so grants with the same words are matched in that order. If some of
// them were taken back, nobody can tell which ones, and the stamps are zero.
func grantStamps(history []live.Change, grants []live.Grant) []stamp {
	found := make(map[string][]stamp) // newest first
	for _, c := range history {
		found[c.What] = append(found[c.What], stampOf(c))
	}
	same := make(map[string]int)
	for _, g := range grants {
		same[grantWords(g)]++
	}
	stamps := make([]stamp, len(grants))
	for i, g := range grants {
		words := grantWords(g)
		if all := found[words]; len(all) == same[words] {
			stamps[i] = all[len(all)-1]
			found[words] = all[:len(all)-1]
			same[words]--
		}
	}
	return stamps
}

// A grantedTo is a grant with the stamp of who gave it.
type grantedTo struct {
	live.Grant
	stamp
}

// grantsIn returns the grants of the settings that have not ended at now. The
// others stay in the settings until the next grant, so their stamps are matched
// too.
func grantsIn(s live.Settings, history []live.Change, now time.Time) []grantedTo {
	all := make([]grantedTo, len(s.Grants))
	for i, by := range grantStamps(history, s.Grants) {
		all[i] = grantedTo{s.Grants[i], by}
	}
	return slices.DeleteFunc(all, func(g grantedTo) bool { return ended(g.Grant, now) })
}

// ended reports whether a grant is no longer in force at now.
func ended(g live.Grant, now time.Time) bool { return !now.Before(g.Until) }
