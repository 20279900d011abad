package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/wiring"
)

// termsOf returns what is in force for the user or the subject with this key, if the
// caller names a tier. The limit and the tier belong to the user or the subject. A
// guard with the BYPASS_ROLES of this environment, and without a MODE, decides by it.
func termsOf(changed *live.Limits, a limits.Activity, key, tier string, at time.Time) live.Terms {
	return numbers(nil).termsOf(changed, a, key, tier, at)
}

// termsOf is termsOf for a caller who gives these numbers.
func (n numbers) termsOf(changed *live.Limits, a limits.Activity, key, tier string, at time.Time) live.Terms {
	one := ownerOf(key)
	if _, only := n[""]; only && len(a.Part(subjectOf(key)).Limit.Rates()) > 1 {
		n = nil // it is for a user's only limit
	}
	t := changed.Terms(live.Query{
		Activity: a, UserID: one.UserID, Subjects: one.Subject, Tier: tier, Numbers: n, At: at, BypassRoles: wiring.Function.BypassRoles(),
	})
	for _, s := range t.Subjects {
		t.Limit, t.Code, t.Tier = s.Limit, s.Code, s.Tier
	}
	return t
}

// warnOfTier notes a tier that no activity has. It gets the ordinary limit.
func (c session) warnOfTier(tier string, changed *live.Limits) {
	if tier == "" || changed.HasTier(tier) {
		return
	}
	if err := unknown("--tier", tier, c.guards.TierNames(), "tier of an activity"); err != nil {
		c.note(err.Error() + " The ordinary limit counts")
	}
}

// A ruling is what operators changed about an activity for one user. Empty
// fields are not changed.
type ruling struct {
	Limit string `json:"limit,omitzero"` // the live limit
	Mode  string `json:"mode,omitzero"`  // the live mode
	Tier  string `json:"tier,omitzero"`  // a granted tier
	Role  string `json:"role,omitzero"`  // a granted role, which bypasses the limit

	Blocked time.Time `json:"blocked,omitzero"` // until when

	code string // the code's limit, if Limit is set
}

// rulingOf returns the ruling in a user's terms, or nil if nothing was changed.
func rulingOf(t live.Terms) *ruling {
	r := ruling{Mode: t.Mode, Tier: t.Tier, Role: t.Role, Blocked: t.Block.Until}
	if !t.Limit.Equal(t.Code) {
		r.Limit, r.code = t.Limit.String(), t.Code.String()
	}
	if r == (ruling{}) {
		return nil
	}
	return &r
}

// String returns the ruling for people. It returns an empty text for nil.
func (r *ruling) String() string {
	if r == nil {
		return ""
	}
	var all []string
	if !r.Blocked.IsZero() {
		all = append(all, "blocked"+untilWhen(r.Blocked))
	}
	for _, part := range [][2]string{{"granted role ", r.Role}, {"live mode ", r.Mode}, {"granted tier ", r.Tier}, {"live limit ", r.Limit}} {
		if part[1] != "" {
			all = append(all, part[0]+part[1])
		}
	}
	if r.Limit != "" {
		all[len(all)-1] += " (code: " + r.code + ")"
	}
	return strings.Join(all, ", ")
}

// A view shows the limits that settings put in force for users without grants.
type view struct {
	live.Settings
	guards   limits.Guards
	at       time.Time
	limits   *live.Limits
	problems []error // what the code can't follow
	blocks   []blocked
}

// viewOf returns the view of settings at this time.
func (c session) viewOf(s live.Settings) view {
	now := c.now()
	s = s.At(now)
	changed, problems := s.Limits(c.guards, nil)
	return view{s, c.guards, now, changed, problems, nil}
}

// view opens the table and reads its settings. It also returns their version.
func (f *tableFlags) view(ctx context.Context, env session) (view, int64, error) {
	if err := f.open(ctx); err != nil {
		return view{}, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	settings, version, err := liveedit.Read(ctx, f.store.live)
	if err := env.readOn("live limits", err); err != nil {
		return view{}, 0, err
	}
	env.noteDamagedLimits(settings)
	v := env.viewOf(settings)
	blocks, _, err := liveedit.ReadBlocks(ctx, f.store.live)
	env.noteDamaged(blocks)
	v.blocks = blocksOf(blocks, v.at)
	return v, version, env.readOn("blocks", err)
}

// inForce returns the limit in force of an activity or, if subject is not empty, of that
// subject, for callers of a tier, in its text form. It also returns the mode that
// operators set, which a subject does not have.
func (v view) inForce(a limits.Activity, subject, tier string) (limit, mode string) {
	if subject != "" {
		return termsOf(v.limits, a, limits.SubjectID(subject, ""), tier, v.at).Limit.String(), ""
	}
	t := termsOf(v.limits, a, "", tier, v.at)
	return cmp.Or(t.Limit.String(), inCode(a, tier)), t.Mode
}

// partOf returns the activity whose limit the settings have under a name such as write or
// write/room, and the name of the subject; empty: users. It returns false if the code has
// no such limit.
func (v view) partOf(name string) (a limits.Activity, subject string, ok bool) {
	t := live.ParseTarget(name)
	_, a, ok = v.guards.Activity(t.Activity)
	return a, t.Subject, ok && a.Has(t.Subject)
}

// codeOf returns the code's limit of what has this name. That is an activity or its
// subject, or a group's limit in each of its activities, such as "40/1h cost 2 or 40/1h".
// It is empty if the code has no such name.
func (v view) codeOf(name, tier string) string {
	a, subject, ok := v.partOf(name)
	switch {
	case ok && subject != "":
		return a.Part(subject).For(tier).String()
	case ok:
		return inCode(a, tier)
	}
	var texts []string
	for _, a := range v.guards.Grouped() {
		for _, part := range a.Parts() {
			if _, ok := part.Tiers[tier]; tier != "" && !ok {
				continue
			}
			for _, r := range part.Limit.Rates() {
				text := part.For(tier).Part(r.Name)
				if (live.Target{Group: a.Group, Subject: part.Name, Limit: r.Name}).String() == name && !slices.Contains(texts, text) {
					texts = append(texts, text)
				}
			}
		}
	}
	return strings.Join(texts, " or ")
}

// shown returns what inForce does for the activity or the subject with this name, and the
// number of a limit of a group. If the code can't follow what operators wrote, it returns
// that instead.
func (v view) shown(name, tier string) (limit, mode string) {
	a, subject, ok := v.partOf(name)
	o := v.Activities[name]
	text := o.Text(tier)
	if !ok {
		return cmp.Or(text, v.codeOf(name, tier)), o.Mode
	}
	limit, mode = v.inForce(a, subject, tier)
	if _, err := live.Instead(a, subject, tier, text); text != "" && err != nil {
		limit = text
	}
	return limit, cmp.Or(mode, o.Mode)
}

// endOf returns when the limit of a tier, or the mode, ends by itself; zero: never.
func (v view) endOf(name, tier, of string) time.Time {
	if of == "mode" {
		return v.Ends[name].Mode.For(v.Activities[name].Mode)
	}
	return v.Ends[name].Limits[tier].For(v.Activities[name].Text(tier))
}

// A stamp tells who set something, and when. The zero stamp is an unknown one.
type stamp struct {
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitzero"`
}

// stampOf returns the stamp beside a limit or a mode. It is zero if somebody has
// changed the text by hand since.
func stampOf(s live.Stamp, text string) (by stamp) {
	if s.Of == text {
		by = stamp{s.Since, s.By}
	}
	return by
}

// cells returns the stamp for a table.
func (s stamp) cells() []string {
	if s.Since.IsZero() {
		return []string{"", ""}
	}
	return []string{s.Since.Format(time.RFC3339), s.By}
}

// A grantedTo is a grant, perhaps with the stamp of who gave it.
type grantedTo struct {
	owner
	Role   string    `json:"role,omitzero"`
	Tier   string    `json:"tier,omitzero"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
	stamp
}

// grantOf returns a grant without its stamp.
func grantOf(g live.Grant) grantedTo {
	return grantedTo{owner: ownerOf(g.UserID), Role: g.Role, Tier: g.Tier, Until: g.Until, Reason: g.Reason}
}

// A change of a limit or a mode, from Old to New.
type change struct {
	Activity string `json:"activity"` // or one such as write/room or content.writes: see liveName
	Tier     string `json:"tier,omitzero"`
	Of       string `json:"of"` // limit or mode
	Old      string `json:"old"`
	New      string `json:"new"`

	Until time.Time `json:"until,omitzero"` // when New ends
}

func (c change) String() string {
	return fmt.Sprintf("%s: %s %s -> %s%s", nameOf(c.Activity, c.Tier), c.Of, c.Old, c.New, untilWhen(c.Until))
}

// nameOf names an activity, or one of its tiers, for people.
func nameOf(activity, tier string) string {
	if tier != "" {
		tier = "tier " + tier
	}
	return limitOf(activity, tier)
}

// limitOf names a limit of an activity for people. The name of a limit is empty
// if the activity has only one.
func limitOf(activity, name string) string {
	if name == "" {
		return activity
	}
	return activity + ", " + name
}

// changesOf returns what differs between two settings in the limit with this name.
func changesOf(before, after view, name string) (all []change) {
	add := func(tier, of, old, now string) {
		was, until := before.endOf(name, tier, of), after.endOf(name, tier, of)
		if old != now || !was.Equal(until) {
			all = append(all, change{name, tier, of, old, now, until})
		}
	}
	tiers := slices.Concat([]string{""}, slices.Collect(maps.Keys(before.Activities[name].Tiers)), slices.Collect(maps.Keys(after.Activities[name].Tiers)))
	for _, tier := range slices.Compact(slices.Sorted(slices.Values(tiers))) {
		old, _ := before.shown(name, tier)
		now, _ := after.shown(name, tier)
		add(tier, "limit", cmp.Or(old, "none"), cmp.Or(now, "none"))
	}
	_, old := before.shown(name, "")
	_, now := after.shown(name, "")
	add("", "mode", cmp.Or(old, "as deployed"), cmp.Or(now, "as deployed"))
	return all
}

// changeFlags belong to commands that change the live limits.
type changeFlags struct {
	Why  string `placeholder:"TEXT" help:"Why you make this change, for the history, in at most 200 bytes."`
	By   string `placeholder:"NAME" help:"Who makes the change, in at most 100 bytes. Default: the name of the user who runs the command."`
	JSON bool   `name:"json" help:"Print one JSON document."`
	tableFlags
}

// A report is what a command prints after it changed the live limits or the blocks.
type report struct {
	What string `json:"what"`
	owner
	Changes  []change    `json:"changes,omitempty"`
	Granted  *grantedTo  `json:"granted,omitzero"`
	Replaced []grantedTo `json:"replaced,omitempty"` // by the grant
	Revoked  []grantedTo `json:"revoked,omitempty"`
	Blocked  *blocked    `json:"blocked,omitzero"`
	Lifted   []blocked   `json:"lifted,omitempty"`
	At       time.Time   `json:"at"`
	By       string      `json:"by"`
	Why      string      `json:"why,omitzero"`
	tableName

	before, after live.Settings
}

// by returns who makes the change: by default the user who runs the command.
func (f *changeFlags) by() string {
	if f.By != "" {
		return f.By
	}
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// report returns the report of a change, which is what.
func (f *changeFlags) report(what string, c liveedit.Change) report {
	return report{What: what, At: c.At.UTC(), By: c.By, Why: c.Why, tableName: f.opened}
}

// edit changes the settings and records c, whose time and names it fills in.
func (f *changeFlags) edit(ctx context.Context, env session, c liveedit.Change, edit func(liveedit.Draft) (liveedit.Draft, error)) (r report, err error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.At, c.By, c.Why = env.now(), f.by(), f.Why
	r = f.report(sentence(c), c)
	asked := false // whether the table was asked to make the change
	err = liveedit.Edit(within, f.store.live, env.guards, c, func(now liveedit.Draft) (liveedit.Draft, error) {
		r.before = now.Settings
		after, err := edit(now)
		r.after, asked = after.Settings, err == nil
		return after, err
	})
	if err == nil {
		for _, name := range slices.Sorted(maps.Keys(r.before.Damaged.Activities)) {
			if _, left := r.after.Damaged.Activities[name]; !left {
				env.note("the entry of " + name + " could not be read: all of it is replaced, also what the command does not name")
			}
		}
	}
	if ctx.Err() != nil && asked {
		env.note("stopped: the change may be made or not; see guards limits history")
	}
	return r, reached(err)
}

// print writes the report as JSON if --json is given. Otherwise it writes these
// lines, then the table and when instances follow.
func (f *changeFlags) print(env session, r report, lines ...string) error {
	return env.print(f.JSON, r, append(lines, "in "+f.where()+"; instances follow within 30 s of use")...)
}

// printChanges writes what changed of the limits with these names, or otherwise the text of none.
func (f *changeFlags) printChanges(env session, r report, none string, names ...string) error {
	before, after := env.viewOf(r.before), env.viewOf(r.after)
	for _, name := range names {
		r.Changes = append(r.Changes, changesOf(before, after, name)...)
	}
	var lines []string
	for _, c := range r.Changes {
		lines = append(lines, c.String())
	}
	if len(lines) == 0 {
		lines = []string{none}
	}
	return f.print(env, r, lines...)
}
