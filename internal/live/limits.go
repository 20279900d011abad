package live

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// Limits are the code's limits with the settings applied. With nil Limits, the
// code's limits apply unchanged.
type Limits struct {
	activities map[string]activity
	grants     map[string][]Grant
}

type activity struct {
	limits.Activity
	mode string
}

// A Case is what the terms of one request depend on.
type Case struct {
	Activity limits.Activity // as in the code
	UserID   string
	Subjects map[string]string // the ids of other subjects, by their names in the code
	Tier     string            // that the caller names
	Roles    []string          // that the caller has
	At       time.Time

	BypassRoles []string // callers with one of these roles are never limited
	Mode        string   // with which the function is deployed; empty: enforce
}

// Terms are what is in force for a [Case].
type Terms struct {
	Limit    policy.Policy // zero: no limit
	Code     policy.Policy // what the code alone would put in its place
	Subjects []Subject     // those that the case names, in the order of the code
	Label    string        // of the activity, like Group and Hold
	Group    string
	Hold     bool
	Mode     string // of the operators, or else of the function

	Unlimited bool   // there is no limit, or the mode is off: nothing is counted
	Role      string // a bypass role, granted or the caller's, with which nothing is counted; empty: none
	Tier      string // a granted tier that the activity has; it replaces the tier of the caller
}

// A Subject is one of the case with its limit, as Terms has it.
type Subject struct {
	Name, UserID string // UserID is the key of its items, see [limits.SubjectID]
	Limit, Code  policy.Policy
	Tier         string // a granted tier, as in Terms
}

// Parts calls yield with the user, who has no name and no key here, and with each
// subject, until yield returns false.
func (t Terms) Parts(yield func(Subject) bool) {
	if !yield(Subject{Limit: t.Limit, Code: t.Code}) {
		return
	}
	for _, s := range t.Subjects {
		if !yield(s) {
			return
		}
	}
}

// Exempt reports whether nothing is counted.
func (t Terms) Exempt() bool { return t.Unlimited || t.Role != "" }

// Terms returns the terms of a case. Everything that decides or shows what is in
// force asks this function.
func (l *Limits) Terms(c Case) (t Terms) {
	activity, mode := l.Activity(c.Activity)
	t.Label, t.Group, t.Hold = activity.Label, activity.Group, activity.Hold
	if t.Mode = mode; mode == "" || c.Mode == off { // a function that is off can't be switched on
		t.Mode = c.Mode
	}
	apply := func(g Grant) {
		switch _, named := activity.Tiers[g.Tier]; {
		case !g.inForce(c.At) || c.Activity.Unlimited:
		case g.Role == "" && named: // otherwise it is a tier that only other activities have
			t.Tier = g.Tier
		case g.Role != "" && slices.Contains(c.BypassRoles, g.Role):
			t.Role = g.Role
		}
	}
	for _, role := range c.Roles {
		apply(Grant{Role: role, Until: c.At.Add(1)}) // it holds as long as the caller has it
	}
	if l != nil {
		for _, g := range l.grants[c.UserID] {
			apply(g)
		}
	}
	tier := cmp.Or(t.Tier, c.Tier)
	t.Limit, t.Code = activity.For(tier), c.Activity.For(tier)
	for i, s := range activity.Subjects {
		id, ok := c.Subjects[s.Name]
		if !ok {
			continue
		}
		one := Subject{Name: s.Name, UserID: limits.SubjectID(s.Name, id)}
		one.Tier = l.tier(one.UserID, s.Tiers, c.At)
		tier := cmp.Or(one.Tier, c.Tier)
		one.Limit, one.Code = s.For(tier), c.Activity.Subjects[i].For(tier)
		t.Subjects = append(t.Subjects, one)
	}
	t.Unlimited = t.Limit.IsZero() || t.Mode == off
	return t
}

// tier returns the tier among tiers that is granted to a subject at a time; empty: none.
func (l *Limits) tier(userID string, tiers limits.Tiers, at time.Time) (tier string) {
	if l == nil {
		return ""
	}
	for _, g := range l.grants[userID] {
		if _, named := tiers[g.Tier]; named && g.inForce(at) {
			tier = g.Tier
		}
	}
	return tier
}

// Activity returns an activity of the code with the settings applied, and its
// mode. An empty mode means that the mode of the function applies.
func (l *Limits) Activity(a limits.Activity) (now limits.Activity, mode string) {
	if l != nil {
		if changed, ok := l.activities[a.Name]; ok {
			return changed.Activity, changed.mode
		}
	}
	return a, ""
}

// Limits applies the settings to the code's guards. What the code can't follow,
// for example after a deploy or an edit by hand, must not stop the rest. It keeps
// the value that it had in last, which may be nil, or else the code's. The
// problems name it. They can contain user ids, so they are not for a log.
func (s Settings) Limits(guards limits.Guards, last *Limits) (l *Limits, problems []error) {
	l = &Limits{activities: make(map[string]activity), grants: make(map[string][]Grant)}
	merged, problems := s.merged(guards, last)
	for _, name := range slices.Sorted(maps.Keys(merged)) { // an activity comes before its subjects
		problems = append(problems, l.apply(name, merged[name], guards, last)...)
	}
	for _, g := range s.Grants {
		l.grants[g.UserID] = append(l.grants[g.UserID], g)
	}
	return l, problems
}

// Name returns the name of an override: that of the activity or, for a subject of the
// activity, one such as write/room.
func Name(activity, subject string) string { return joined(activity, "/", subject) }

// joined returns a and b with the separator between them, or a alone if b is empty.
func joined(a, separator, b string) string {
	if b == "" {
		return a
	}
	return a + separator + b
}

// merged returns the override of each part of an activity, with those of its group's
// limits in it. A part's own limit wins. A number that a part can't follow is as in last
// there, or as in the code. The problems name it, and what no activity has.
func (s Settings) merged(guards limits.Guards, last *Limits) (merged map[string]Override, problems []error) {
	merged = clone(s.Activities)
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		if !strings.Contains(name, ".") {
			continue
		}
		delete(merged, name)
		group, known := s.Activities[name], map[string]bool{} // the tiers; "" for the ordinary limit
		problem := func(err error) { problems = append(problems, fmt.Errorf("%s: %w", name, err)) }
		for _, a := range guards.Grouped() {
			for _, part := range a.Parts() {
				limit, ok := strings.CutPrefix(name, joined(a.Group, ".", part.Name)+".")
				if !ok || part.Limit.Part(limit) == "" {
					continue
				}
				known[""] = true
				for tier := range part.Tiers {
					known[tier] = true
				}
				own := Name(a.Name, part.Name)
				o, err := s.inGroup(a, part, limit, group, merged[own].clone(), last)
				if merged[own] = o; err != nil {
					problem(fmt.Errorf("%s: %w", own, err))
				}
			}
		}
		if err := group.strange(name, known); err != nil {
			problem(err)
		}
	}
	return merged, problems
}

// inGroup returns o, the override of a part of an activity, with the numbers that its
// group has now for one limit. If the part can't follow one, the limit stays as in last.
func (s Settings) inGroup(a limits.Activity, part limits.Subject, limit string, group, o Override, last *Limits) (_ Override, problems error) {
	was, _ := last.Activity(a)
	for _, tier := range append(slices.Sorted(maps.Keys(part.Tiers)), "") {
		if group.Text(tier) == "" || s.Activities[Name(a.Name, part.Name)].Text(tier) != "" {
			continue
		}
		before := policy.Must(cmp.Or(o.Text(tier), part.For(tier).String()))
		p, err := Instead(a, part.Name, tier, before.Replace(limit, group.Text(tier)))
		if err != nil {
			problems = errors.Join(problems, err)
			p = policy.Must(before.Replace(limit, was.Part(part.Name).For(tier).Part(limit)))
		}
		o.put(tier, p.String())
	}
	return o, problems
}

// strange returns an error for what an override of a group's limit can't have, if the
// group's activities have that limit for these tiers.
func (o Override) strange(name string, known map[string]bool) error {
	switch {
	case !known[""]:
		return input.Invalid("group", input.Show(name), "a group and the name of a limit that its activities have, such as content.writes")
	case o.Mode != "":
		return errors.New("a limit of a group has no mode, but an activity has one")
	}
	for _, tier := range slices.Sorted(maps.Keys(o.Tiers)) {
		if !known[tier] {
			return input.Invalid("tier", input.Show(tier), "a tier of an activity in the group")
		}
	}
	return nil
}

// An Override changes one activity. Its limits are in the text form of package
// policy: 20/1m, bucket 10/1m burst 15, or minute: 20/1m, day: 300/1d.
//
// A live limit counts in the same items as the code's limit. So both must have
// the same kind and, except for buckets, the same window: see [policy.Share].
// The options keep and ahead stay as in the code if the text has none. A burst
// does not: bucket 10/1m always means a burst of 10.
type Override struct {
	Limit string            `json:"limit,omitzero"` // for tiers that are not in Tiers; empty: the code's limit
	Tiers map[string]string `json:"tiers,omitempty"`
	Mode  string            `json:"mode,omitzero"` // enforce, shadow or off; empty: the function's own mode

	Set     map[string]Stamp `json:"set,omitempty"` // by tier; that of Limit is Set[""]
	ModeSet Stamp            `json:"modeSet,omitzero"`
}

// off is the mode in which nobody is limited.
const off = "off"

// apply puts the mode, the limit and the limit of each tier of an override in force,
// which apply separately. What the code can't follow keeps its value in last, or else
// the code's. The errors name it.
func (l *Limits) apply(name string, o Override, guards limits.Guards, last *Limits) (problems []error) {
	of, subject, _ := strings.Cut(name, "/")
	_, code, ok := guards.Activity(of)
	switch {
	case !ok:
		return []error{input.Invalid("activity", input.Show(of), "an activity that guards limits lists")}
	case code.Unlimited:
		return []error{input.Invalid("activity", input.Show(of), "an activity that has a limit")}
	case !code.Has(subject):
		return []error{input.Invalid("subject", input.Show(subject), "a subject of "+of)}
	}
	problem := func(err error) { problems = append(problems, fmt.Errorf("%s: %w", name, err)) }
	was, mode := last.Activity(code)
	now, set := l.Activity(code)
	switch {
	case subject != "" && o.Mode != "":
		problem(errors.New("a subject has no mode, but its activity has one"))
		o.Mode = set
	case subject != "":
		o.Mode = set
	case o.Mode != "" && !slices.Contains([]string{"enforce", "shadow", off}, o.Mode):
		problem(input.Invalid("mode", input.Show(o.Mode), "enforce, shadow or off"))
		o.Mode = mode
	}
	part, before := now.Part(subject), was.Part(subject)
	part.Tiers = clone(part.Tiers)
	if o.Limit != "" {
		p, err := Instead(code, subject, "", o.Limit)
		if err != nil {
			problem(err)
			p = before.Limit
		}
		part.Limit = p
	}
	for _, tier := range slices.Sorted(maps.Keys(o.Tiers)) {
		p, err := Instead(code, subject, tier, o.Tiers[tier])
		if err != nil {
			problem(fmt.Errorf("tier %q: %w", tier, err))
			if p = before.Tiers[tier]; p.IsZero() {
				continue // a tier that never had a limit of its own
			}
		}
		part.Tiers[tier] = p
	}
	l.activities[of] = activity{now.With(part), o.Mode}
	return problems
}

// Instead returns the policy that replaces the code's policy of a tier, for the user or
// for a subject: text, with the options of the code's policy that text leaves out. It
// returns an error if the two cannot share a count, or if it is too fast for an activity
// that holds its receipts. All policies of a part share one count, so it is enough to
// compare a live policy with one policy of the code.
func Instead(code limits.Activity, subject, tier, text string) (policy.Policy, error) {
	p, err := policy.Parse(text)
	if err != nil {
		return p, err
	}
	p, err = p.OptionsOf(code.Part(subject).For(tier))
	if err != nil {
		return policy.Policy{}, fmt.Errorf("a live limit keeps the kind, the window and the cost of the code's limit: %w", err)
	}
	if code.Hold {
		err = p.CheckHold()
	}
	return p, err
}

// empty reports whether the override changes nothing.
func (o Override) empty() bool { return o.Limit == "" && o.Mode == "" && len(o.Tiers) == 0 }

// Text returns the limit of a tier, or of the ordinary limit; empty: the code's.
func (o Override) Text(tier string) string {
	if tier == "" {
		return o.Limit
	}
	return o.Tiers[tier]
}

// put changes what Text returns. Its maps must be o's own.
func (o *Override) put(tier, text string) {
	if tier == "" {
		o.Limit = text
	} else {
		o.Tiers[tier] = text
	}
}

// clone returns a copy with maps of its own.
func (o Override) clone() Override {
	o.Tiers, o.Set = clone(o.Tiers), clone(o.Set)
	return o
}

// without returns the parts of o that differ from those of was.
func (o Override) without(was Override) Override {
	if o.Limit == was.Limit {
		o.Limit = ""
	}
	if o.Mode == was.Mode {
		o.Mode = ""
	}
	o.Tiers = maps.Clone(o.Tiers)
	maps.DeleteFunc(o.Tiers, func(tier, limit string) bool {
		before, ok := was.Tiers[tier]
		return ok && before == limit
	})
	return o
}
