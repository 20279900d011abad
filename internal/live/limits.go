package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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
	blocks     map[string][]Block  // by user or by the key of a subject
	overrides  map[string]Override // by name; activities is made of them

	until time.Time // when something of these limits ends
	after *Limits   // the limits from then on; nil: nothing ends
}

type activity struct {
	limits.Activity
	mode   string
	before map[string]limits.Subject // by part: the limits before those that are only tried
}

// A Query is what the terms of one request depend on.
type Query struct {
	Activity limits.Activity // as in the code
	UserID   string
	Subjects map[string]string // the ids of other subjects, by their names in the code
	Tier     string            // that the caller names
	Roles    []string          // that the caller has
	Numbers  map[string]int64  // that the caller gives for limits with a max, by [policy.FullName]; "" is the user's only limit
	At       time.Time

	BypassRoles []string // callers with one of these roles are never limited
	Mode        string   // that the function is deployed with; empty: enforce
}

// Terms are what is in force for a [Query].
type Terms struct {
	Subject            // the user
	Subjects []Subject // those that the query names, in the order of the code
	Label    string    // of the activity, like Group and Hold
	Group    string
	Hold     bool
	Shared   bool   // the activity has subjects in the code, even if the query names none
	Mode     string // of the operators, or else of the function

	Unlimited bool   // there is no limit, or the mode is off: nothing is counted
	Role      string // a bypass role, granted or the caller's: nothing is counted; empty: none

	Block   Block  // that keeps the user or a subject from the activity, whatever the rest says; zero: none
	Blocked string // the name of that subject; empty: it is the user
}

// A Subject is the user or a subject of the query, with what is in force for it.
type Subject struct {
	Name   string        // empty: the user
	UserID string        // the key of its items, see [limits.SubjectID]
	Limit  policy.Policy // zero: no limit
	Code   policy.Policy // what the code alone would put in its place
	Before policy.Policy // if Limit is lower than the live limit before it: that one; see [Trials]. Zero: none
	Tier   string        // a granted tier that the activity has; it replaces the tier of the caller
}

// Parts yields the user and each subject.
func (t Terms) Parts(yield func(Subject) bool) {
	if yield(t.Subject) {
		slices.Values(t.Subjects)(yield)
	}
}

// Exempt reports whether nothing is counted.
func (t Terms) Exempt() bool { return t.Unlimited || t.Role != "" }

// Terms returns the terms for a query. Everything that decides or shows what is in
// force asks this function.
func (l *Limits) Terms(c Query) (t Terms) {
	l = l.At(c.At)
	activity, mode := l.Activity(c.Activity)
	t.Label, t.Group, t.Hold, t.Shared = activity.Label, activity.Group, activity.Hold, len(activity.Subjects) > 0
	if t.Mode = mode; mode == "" || c.Mode == Off { // a function that is off can't be switched on
		t.Mode = c.Mode
	}
	var role string
	t.Subject, role = l.subject(c, activity.Part(""), c.UserID)
	for _, s := range activity.Subjects {
		if id, ok := c.Subjects[s.Name]; ok {
			one, _ := l.subject(c, s, limits.SubjectID(s.Name, id))
			t.Subjects = append(t.Subjects, one)
		}
	}
	for _, own := range c.Roles {
		if slices.Contains(c.BypassRoles, own) {
			t.Role = own
		}
	}
	if t.Role = cmp.Or(role, t.Role); c.Activity.Unlimited {
		t.Role = ""
	}
	t.Unlimited = t.Limit.IsZero() || t.Mode == Off
	if c.Mode != Off {
		t.Block, t.Blocked = l.blocked(c, t)
	}
	return t
}

// subject returns the terms of a part of the query's activity, and the bypass role that the
// user or the subject with this key has by a grant; empty: none.
func (l *Limits) subject(c Query, part limits.Subject, key string) (s Subject, role string) {
	s.Name, s.UserID = part.Name, key
	for _, g := range l.grants[key] {
		switch _, named := part.Tiers[g.Tier]; {
		case !g.InForce(c.At):
		case g.Role == "" && named: // otherwise it is a tier that only other activities have
			s.Tier = g.Tier
		case g.Role != "" && slices.Contains(c.BypassRoles, g.Role):
			role = g.Role
		}
	}
	tier := cmp.Or(s.Tier, c.Tier)
	s.Limit = c.with(part.Name, s.Tier, part.For(tier))
	s.Code = c.Activity.Part(part.Name).For(tier)
	s.Before = l.activities[c.Activity.Name].before[part.Name].For(tier)
	return s, role
}

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

// HasTier reports whether an activity has a live limit for this tier, or one of the code's.
func (l *Limits) HasTier(tier string) bool {
	if l == nil {
		return false
	}
	for _, a := range l.activities {
		for _, part := range a.Parts() {
			if _, ok := part.Tiers[tier]; ok {
				return true
			}
		}
	}
	return false
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
// the value that it had in last, which may be nil, or else the code's. The blocks stay as
// they are in last. The problems name what the code can't follow. They can contain user
// ids, so they are not for a log.
func (s Settings) Limits(guards limits.Guards, last *Limits) (*Limits, []error) {
	s = s.keeping(last)
	l := &Limits{activities: make(map[string]activity), grants: make(map[string][]Grant), overrides: s.Activities, until: s.firstEnd()}
	c := change{Settings: s, last: last, known: make(map[[2]string]bool)}
	for _, code := range guards.All {
		if !code.Unlimited {
			l.activities[code.Name] = c.activity(code)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		if err := c.checkTarget(name, guards); err != nil {
			c.problems = append(c.problems, err)
		}
	}
	for _, g := range s.Grants {
		l.grants[g.UserID] = append(l.grants[g.UserID], g)
	}
	if last != nil {
		l.blocks = last.blocks
	}
	if !l.until.IsZero() {
		l.after, _ = s.At(l.until).Limits(guards, l)
	}
	return l, c.problems
}

// keeping returns the settings with what last has instead of the damaged overrides. A kill
// switch must not end because of a mistake in its entry, and its end still holds.
func (s Settings) keeping(last *Limits) Settings {
	if len(s.Damaged.Activities) == 0 || last == nil {
		return s
	}
	all := map[string]Override{}
	maps.Copy(all, s.Activities)
	for name := range s.Damaged.Activities {
		if o, ok := last.overrides[name]; ok {
			all[name] = o
		}
	}
	s.Activities, s.Damaged = all, Damaged{}
	return s
}

// An Override changes one activity. Its limits are in the text form of package
// policy: 20/1m, bucket 10/1m burst 15, or minute: 20/1m, day: 300/1d.
//
// A live limit counts in the same items as the code's limit, so they must [policy.CompatibleTiers].
// It has those options of the code's limit that its text leaves out, but never the
// burst: bucket 10/1m always means a burst of 10.
type Override struct {
	Limit string            `json:"limit,omitzero"` // for tiers that are not in Tiers; empty: the code's limit
	Tiers map[string]string `json:"tiers,omitempty"`
	Mode  string            `json:"mode,omitzero"` // enforce, shadow or off; empty: the function's own mode

	Set     map[string]Stamp `json:"set,omitempty"` // by tier; Limit's stamp is Set[""]
	ModeSet Stamp            `json:"modeSet,omitzero"`
}

// Empty reports whether o changes nothing.
func (o Override) Empty() bool { return o.Limit == "" && o.Mode == "" && len(o.Tiers) == 0 }

// The modes.
const (
	Enforce = "enforce"
	Shadow  = "shadow" // count and report, but refuse nobody
	Off     = "off"    // allow without a request to the table
)

// Modes are how strict a function can be, and an override. The first one is the default.
var Modes = []string{Enforce, Shadow, Off}

// A change applies settings to one activity after the other. The mode and the limit of
// each tier apply separately.
type change struct {
	Settings

	last     *Limits
	known    map[[2]string]bool // names of groups' limits, each with the tiers that have it; "" is the ordinary limit
	problems []error
}

// activity returns an activity of the code with the settings applied.
func (c *change) activity(code limits.Activity) activity {
	was, mode := c.last.Activity(code)
	now := activity{Activity: code, mode: c.Activities[code.Name].Mode, before: map[string]limits.Subject{}}
	if now.mode != "" && !slices.Contains(Modes, now.mode) {
		c.problems = append(c.problems, fmt.Errorf("%s: %w", code.Name, input.Invalid("mode", input.Show(now.mode), "enforce, shadow or off")))
		now.mode = mode
	}
	for _, part := range code.Parts() {
		part = c.part(code, part, was.Part(part.Name))
		now.Activity, now.before[part.Name] = now.With(part), c.Trials.before(code, part)
	}
	return now
}

// part returns a part of an activity with the numbers that its group has now, and with
// its own live limits, which win. Was has its last good limits.
func (c *change) part(code limits.Activity, part, was limits.Subject) limits.Subject {
	now, before := byTier(part), byTier(was)
	follow := func(what, tier, text, last string) {
		p, err := Instead(code, part.Name, tier, text)
		if err == nil {
			err = c.keepsLockouts(code, part, tier, p)
		}
		if err != nil {
			c.problems = append(c.problems, fmt.Errorf("%s: %w", what, err))
			p, err = Instead(code, part.Name, tier, last)
		}
		if err == nil { // otherwise a tier that never had a limit of its own
			now[tier] = p
		}
	}
	name := Target{Activity: code.Name, Subject: part.Name}.String()
	own := c.Activities[name]
	for _, r := range part.Limit.Rates() {
		ofGroup := Target{Group: code.Group, Subject: part.Name, Limit: r.Name}.String()
		for _, tier := range slices.Sorted(maps.Keys(now)) {
			text := c.Activities[ofGroup].Text(tier)
			c.known[[2]string{ofGroup, tier}] = code.Group != ""
			if code.Group != "" && text != "" && own.Text(tier) == "" {
				follow(ofGroup+": "+name, tier, now[tier].Replace(r.Name, text), now[tier].Replace(r.Name, before[tier].Part(r.Name)))
			}
		}
	}
	if own.Limit != "" {
		follow(name, "", own.Limit, was.Limit.String())
	}
	for _, tier := range slices.Sorted(maps.Keys(own.Tiers)) {
		follow(fmt.Sprintf("%s: tier %q", name, tier), tier, own.Tiers[tier], was.Tiers[tier].String())
	}
	part.Limit, part.Tiers = now[""], now
	delete(now, "")
	return part
}

// byTier returns the limits of a part by their tier. The ordinary limit has the tier
// "".
func byTier(part limits.Subject) limits.Tiers {
	tiers := limits.Tiers{}
	maps.Copy(tiers, part.Tiers)
	tiers[""] = part.Limit
	return tiers
}

// checkTarget returns an error if the code does not have what this override changes.
func (c *change) checkTarget(name string, guards limits.Guards) error {
	o := c.Activities[name]
	t := ParseTarget(name)
	_, code, ok := guards.Activity(t.Activity)
	group := t.Activity == ""
	switch {
	case group && !c.known[[2]string{name, ""}]:
		return fmt.Errorf("%s: %w", name, input.Invalid("group", input.Show(name), "a group and the name of a limit that its activities have, such as content.writes"))
	case group && o.Mode != "":
		return fmt.Errorf("%s: a limit of a group has no mode, but an activity has one", name)
	case group:
		for _, tier := range slices.Sorted(maps.Keys(o.Tiers)) {
			if !c.known[[2]string{name, tier}] {
				return fmt.Errorf("%s: %w", name, input.Invalid("tier", input.Show(tier), "a tier of an activity in the group"))
			}
		}
	case !ok:
		return input.Invalid("activity", input.Show(t.Activity), "an activity that guards limits lists")
	case code.Unlimited:
		return input.Invalid("activity", input.Show(t.Activity), "an activity that has a limit")
	case !code.Has(t.Subject) || name != t.String():
		return input.Invalid("subject", input.Show(t.Subject), "a subject of "+t.Activity)
	case t.Subject != "" && o.Mode != "":
		return fmt.Errorf("%s: a subject has no mode, but its activity has one", name)
	}
	return nil
}

// Instead returns the policy that replaces the code's policy of a tier, for the user or
// for a subject. It is text, with the options of the code's policy that text leaves
// out. It returns an error if the two cannot share a count, or if it is too fast for
// Hold. All policies of a part share one count, so it is enough to compare with one of
// the code.
func Instead(code limits.Activity, subject, tier, text string) (policy.Policy, error) {
	p, err := policy.Parse(text)
	if err != nil {
		return p, err
	}
	p, err = p.WithDefaults(code.Part(subject).For(tier))
	if err != nil {
		return policy.Policy{}, fmt.Errorf("a live limit keeps the kind, the window and the cost of the code's limit: %w", err)
	}
	if code.Hold {
		err = p.CheckHold()
	}
	return p, err
}

// Text returns the limit of a tier, or of the ordinary limit; empty: the code's.
func (o Override) Text(tier string) string {
	if tier == "" {
		return o.Limit
	}
	return o.Tiers[tier]
}
