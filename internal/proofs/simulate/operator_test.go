package simulate_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
)

// premium is the only tier.
const premium = "premium"

func (s *sim) guard() limits.Guard {
	return limits.Guard{Name: "g", Message: "m", Activities: s.activities}
}

// anActivity returns one of the activities.
func (s *sim) anActivity() limits.Activity {
	if len(s.activities) == 1 {
		return s.activities[0]
	}
	return s.activities[s.random.IntN(len(s.activities))]
}

// named returns the activity with this name.
func (s *sim) named(name string) limits.Activity {
	a, _ := s.guard().Activity(name)
	return a
}

// limitsOf returns the ordinary limits of activities.
func limitsOf(activities []limits.Activity) string {
	list := make([]string, len(activities))
	for i, a := range activities {
		list[i] = a.Limit.String()
	}
	return strings.Join(list, "; ")
}

// settings is the table of the live limits and of the blocks, with the times of all changes.
// Nobody resets anybody, or reads the history.
type settings struct {
	liveedit.Table

	sim      *sim
	versions history // of the live limits
	blocked  history // of the blocks
}

// of names a live limit of an activity, of its subject or of a group. Max callers have no
// tier.
func of(name, subject, tier string) string {
	if subject != "" {
		name += "/" + subject
	}
	return name + " " + tier
}

// mode names the mode of an activity.
func mode(activity string) string { return "mode of " + activity }

// limit returns the limit that this document and the code give a tier of the user or of a
// subject.
func (d settled) limit(code limits.Activity, subject, tier string) string {
	if text, ok := d.set[of(code.Name, subject, tier)]; ok {
		return text
	}
	part := code.Part(subject)
	if _, ok := part.Tiers[tier]; !ok && tier != "" {
		return d.limit(code, subject, "")
	}
	rates, mine := strings.Split(part.For(tier).String(), ", "), part.For(tier)
	for i, text := range rates {
		name, _, _ := strings.Cut(text, ": ")
		if number, ok := d.set[of(ofGroup(code, subject, name), "", tier)]; ok && code.Group != "" {
			rates[i] = number
		}
	}
	whole, err := policy.Must(strings.Join(rates, ", ")).WithDefaults(mine)
	if err != nil {
		return err.Error()
	}
	return whole.String()
}

// grantTo names the grant of the tier to a user or a subject.
func grantTo(id string) string { return "grant to " + id }

// An inForce is what a document and the code give a user or a subject, without numbers.
type inForce struct {
	text    string
	granted bool // its tier is granted
}

// inForce returns what this document and the code give a user or a subject with this id. A
// grant is of a tier that the activity has, and ends by itself.
func (d settled) inForce(code limits.Activity, subject, id, tier string, at int64) inForce {
	until := millis(d.set[grantTo(id)])
	_, inCode := code.Part(subject).Tiers[premium]
	_, inSet := d.set[of(code.Name, subject, premium)]
	granted := at < until && (inCode || inSet)
	if granted {
		tier = premium
	}
	return inForce{d.limit(code, subject, tier), granted}
}

// ofGroup names a limit that the activities of a group share.
func ofGroup(a limits.Activity, subject, limit string) string {
	if subject != "" {
		limit = subject + "." + limit
	}
	return a.Group + "." + limit
}

// Settings implements [live.Source].
func (t *settings) Settings(context.Context, bool) (live.Stored, error) {
	return t.versions.inForce(t.sim.now).Stored, nil
}

// ChangeSettings implements [liveedit.Table].
func (t *settings) ChangeSettings(_ context.Context, before int64, after live.Stored, _ liveedit.Change) error {
	return t.versions.change(t.sim.now, before, after)
}

// operate changes a live limit or a mode, undoes a change, or deletes the document.
func (s *sim) operate() {
	set := maps.Clone(s.settings.versions.inForce(s.now).set)
	if set == nil {
		set = map[string]string{}
	}
	a := s.anActivity()
	parts := a.Parts()
	part := parts[s.random.IntN(len(parts))]
	tier := []string{"", premium}[s.random.IntN(2)]
	name := live.Target{Activity: a.Name, Subject: part.Name}.String()
	changed := slices.ContainsFunc(slices.Collect(maps.Keys(set)), func(k string) bool { return k == name+" "+tier || tier == "" && k == name+" "+premium })
	choices := slices.DeleteFunc(variations(part.Limit), func(p policy.Policy) bool { return a.Hold && p.CheckHold() != nil })
	var edit func(liveedit.Draft) (liveedit.Draft, error)
	what, split := "number", false
	switch {
	case s.chance(6):
		s.settings.versions = append(s.settings.versions, settled{since: s.now})
		clear(set)
	case changed && s.chance(2):
		edit = func(l liveedit.Draft) (liveedit.Draft, error) { return l.Unset(name, tier) }
		if delete(set, name+" "+tier); tier == "" { // without a tier, all changes are undone
			delete(set, name+" "+premium)
			if part.Name == "" {
				delete(set, mode(a.Name))
			}
		}
	case s.chance(7):
		edit, what = s.grant(set), "grant"
	case s.chance(4):
		to := []string{"enforce", "shadow", "off", "enforce"}[s.random.IntN(4)]
		edit = func(l liveedit.Draft) (liveedit.Draft, error) { return l.Set(a.Name, "", "", to), nil }
		set[mode(a.Name)], what = to, "mode"
	case len(choices) == 0:
		return
	case a.Group != "" && s.chance(3):
		s.operateGroup(a, part, tier, choices[s.random.IntN(len(choices))], set)
		return
	default:
		to := choices[s.random.IntN(len(choices))]
		if s.chance(2) {
			to = furthest(choices, to)
		}
		to = s.withoutMax(to)
		if s.odd && s.chance(2) {
			to = reversed(to)
		}
		if own, same := s.ofTheGroup(a, part, tier, to, set); !same && s.chance(2) {
			to = own
		} else {
			split = !same
		}
		edit = func(l liveedit.Draft) (liveedit.Draft, error) { return l.Set(name, tier, to.String(), ""), nil }
		whole, err := to.WithDefaults(part.For(tier))
		if err != nil && a.Group != "" { // such as a longer reservoir than the shared item is kept for
			return
		}
		if err != nil {
			s.fail("%s can't replace %s: %v", to, part.For(tier), err)
			return
		}
		s.keepsMax(whole, to, part.For(tier))
		set[name+" "+tier] = whole.String()
		if tier != "" {
			what = "tier"
		}
		if part.Name != "" {
			s.had(a.Name, "live limit of a subject")
		}
	}
	if split {
		s.refusesSplit(set[name+" "+tier], edit)
		return
	}
	if edit != nil {
		if err := liveedit.Edit(context.Background(), &s.settings, []limits.Guard{s.guard()}, liveedit.Change{}, edit); err != nil {
			s.fail("the live limits can't be changed: %v", err)
			return
		}
	}
	s.settled(a.Name, set, "live "+what)
}

// furthest returns the one of choices whose reservoir gives places furthest ahead, or else p.
func furthest(choices []policy.Policy, p policy.Policy) policy.Policy {
	for _, q := range choices {
		for i, r := range q.Rates() {
			if r.Ahead > p.Rates()[i].Ahead {
				p = q
			}
		}
	}
	return p
}

// grant grants the tier to somebody, until a time, or revokes it.
func (s *sim) grant(set map[string]string) func(liveedit.Draft) (liveedit.Draft, error) {
	id := s.userOrSubject()
	if set[grantTo(id)] != "" && s.chance(2) {
		delete(set, grantTo(id))
		return func(l liveedit.Draft) (liveedit.Draft, error) {
			l, _ = l.Revoke(id)
			return l, nil
		}
	}
	until := s.now + s.upTo(1_200_000)
	set[grantTo(id)] = strconv.FormatInt(until, 10)
	return func(l liveedit.Draft) (liveedit.Draft, error) {
		return l.Grant(live.Grant{UserID: id, Tier: premium, Until: time.UnixMilli(until).UTC(), Reason: "r"}, time.UnixMilli(s.now)), nil
	}
}

// withoutMax returns the limits of a live text, in one of three cases without their max.
func (s *sim) withoutMax(p policy.Policy) policy.Policy {
	rates := p.Rates()
	if !slices.ContainsFunc(rates, func(r policy.Rate) bool { return r.Max > 0 }) || !s.chance(3) {
		return p
	}
	for i := range rates {
		rates[i].Max = 0
	}
	p, _ = parse(rates)
	return p
}

// keepsMax requires that a live limit takes numbers as the code's does. Without a max of its own
// it has the code's, or its own limit if that is higher.
func (s *sim) keepsMax(whole, text, code policy.Policy) {
	for i, r := range text.Rates() {
		c := slices.IndexFunc(code.Rates(), func(c policy.Rate) bool { return c.Name == r.Name })
		want := r.Max
		if most := code.Rates()[c].Max; most > 0 && want == 0 {
			want = max(most, r.Limit)
		}
		if got := whole.Rates()[i].Max; got != want {
			s.fail("%s instead of %s has the max %d, want %d", text, code, got, want)
		}
	}
}

// operateGroup changes a number that the activities of a group share. It can be refused,
// because the other activity could not have that number.
func (s *sim) operateGroup(a limits.Activity, part limits.Subject, tier string, to policy.Policy, set map[string]string) {
	if _, ok := part.Tiers[tier]; !ok {
		tier = ""
	}
	rate := s.withoutMax(to).Rates()[s.random.IntN(len(to.Rates()))]
	rate.Cost = 0 // each activity has its own
	name := ofGroup(a, part.Name, rate.Name)
	err := liveedit.Edit(context.Background(), &s.settings, []limits.Guard{s.guard()}, liveedit.Change{}, func(l liveedit.Draft) (liveedit.Draft, error) {
		return l.Set(name, tier, strings.TrimPrefix(rate.String(), rate.Name+": "), ""), nil
	})
	if err == nil {
		set[of(name, "", tier)] = rate.String()
		s.settled(a.Name, set, "live number of a group")
	}
}

// settled notes what an edit has settled.
func (s *sim) settled(activity string, set map[string]string, what string) {
	s.settings.versions[len(s.settings.versions)-1].set = set
	s.line("an operator changes the live limits to %v", set)
	s.stats["changes of the live limits"]++
	s.had(activity, what)
}

// Settings implements [live.Source] for one instance. Reads fail, and a read that is
// not consistent may return what was in force up to a second ago.
func (in *instance) Settings(_ context.Context, consistent bool) (live.Stored, error) {
	s := in.sim
	in.looked, in.follow.clock, in.follow.read = s.now, in.millis(), true
	if s.chance(8) || s.now < in.downUntil {
		in.follow.failed = true
		return live.Stored{}, errors.New("away")
	}
	at := s.now
	if !consistent && s.chance(5) {
		at = max(at-s.upTo(1000), s.deployed) // code that is deployed finds its own document
	}
	d := s.settings.versions.inForce(at)
	s.line("instance %d reads version %d of the live limits (consistent: %v)", in.number, d.Version, consistent)
	return d.Stored, nil
}

// terms returns what applies to a call on this instance, as the guard finds it. It judges
// that, and looks at the live limits if that is due.
func (in *instance) terms(c call) (live.Terms, []inForce) {
	s := in.sim
	t := in.follower.Limits().Terms(live.Query{
		Activity: s.named(c.Activity), UserID: c.UserID, Subjects: c.subjects, Numbers: c.numbers, Tier: c.tier, At: in.clock(),
	})
	in.judgeBlock(c, t.Block)
	now, follows := in.mayFollow(c, t)
	if !follows {
		s.fail("instance %d goes by %+v for the numbers %v, which was not in force at its last look %d ms ago", in.number, t, c.numbers, s.now-in.looked)
	}
	if in.limiter.CircuitOpen() && !t.Exempt() {
		return t, now
	}
	in.follow.read, in.follow.failed, in.blocks.read, in.blocks.failed = false, false, false, false
	in.follower.Refresh(context.Background(), 0)()
	for _, d := range []*documents{in.follow, in.blocks} {
		if d.read && !d.failed {
			d.since, d.until = s.now-1000, s.now
		}
	}
	age := in.millis() - in.follow.clock
	if !in.follow.read && (age < 0 || age >= 30_000) {
		s.fail("instance %d looked at the live limits %d ms ago by its clock, and does not look now", in.number, age)
	}
	return t, now
}

// mayFollow reports whether a document with these terms was in force when the instance
// looked. It returns what that document and the code give the user and each subject.
func (in *instance) mayFollow(c call, t live.Terms) (now []inForce, follows bool) {
	code := in.sim.named(c.Activity)
	for v := range in.sim.settings.versions.between(in.follow) {
		same := t.Mode == v.set[mode(code.Name)]
		now = now[:0]
		for part := range t.Parts {
			mine := v.inForce(code, part.Name, part.UserID, c.tier, in.millis())
			want := mine.text
			if !mine.granted {
				want, _ = c.numbered(code, part.Name, mine.text)
			}
			now = append(now, mine)
			same = same && want == part.Limit.String() && mine.granted == (part.Tier != "")
		}
		if same {
			return now, true
		}
	}
	return now, false
}
