package simulate_test

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
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

// settings is the table of the live limits, with the times of all changes.
type settings struct {
	sim      *sim
	versions []settled
}

// A settled document is in force from a time on.
type settled struct {
	since    int64
	version  int64
	document []byte
	set      map[string]string // the live limits, by activity and tier; most callers have no tier
}

// of names a live limit.
func of(activity, tier string) string { return activity + " " + tier }

// limit returns the limit that this document and the code give a tier.
func (d settled) limit(code limits.Activity, tier string) string {
	ordinary, ok := d.set[of(code.Name, "")]
	if !ok {
		ordinary = code.Limit.String()
	}
	if tier == "" {
		return ordinary
	}
	if text, ok := d.set[of(code.Name, tier)]; ok {
		return text
	}
	if p, ok := code.Tiers[tier]; ok {
		return p.String()
	}
	return ordinary
}

// inForce returns the document in force at a time.
func (t *settings) inForce(at int64) settled {
	for i := len(t.versions) - 1; i > 0; i-- {
		if t.versions[i].since <= at {
			return t.versions[i]
		}
	}
	return t.versions[0]
}

// Settings implements [live.Source].
func (t *settings) Settings(context.Context, bool) ([]byte, int64, error) {
	d := t.inForce(t.sim.now)
	return d.document, d.version, nil
}

// ChangeSettings implements [liveedit.Table].
func (t *settings) ChangeSettings(_ context.Context, version int64, document []byte, c liveedit.Change) error {
	if version != t.inForce(t.sim.now).version {
		return liveedit.ErrConflict
	}
	t.versions = append(t.versions, settled{since: t.sim.now, version: c.Version, document: document})
	return nil
}

// SettingsHistory implements [liveedit.Table].
func (t *settings) SettingsHistory(context.Context) ([]liveedit.Change, error) { return nil, nil }

// operate changes a live limit, undoes it, or deletes the document.
func (s *sim) operate() {
	set := maps.Clone(s.settings.inForce(s.now).set)
	a := s.anActivity()
	tier := []string{"", premium}[s.random.IntN(2)]
	choices := variations(a.Limit)
	var edit func(liveedit.Draft) (liveedit.Draft, error)
	_, changed := set[of(a.Name, tier)]
	switch {
	case s.chance(6):
		s.settings.versions = append(s.settings.versions, settled{since: s.now})
		set = nil
	case changed && s.chance(2):
		edit = func(l liveedit.Draft) (liveedit.Draft, error) { return l.Unset(a.Name, tier) }
		if delete(set, of(a.Name, tier)); tier == "" { // without a tier, all changes of the activity are undone
			delete(set, of(a.Name, premium))
		}
	case len(choices) == 0:
		return
	default:
		to := choices[s.random.IntN(len(choices))]
		if s.odd && s.chance(2) {
			to = reversed(to)
		}
		edit = func(l liveedit.Draft) (liveedit.Draft, error) { return l.Set(a.Name, tier, to.String(), ""), nil }
		if set == nil {
			set = map[string]string{}
		}
		whole, err := to.OptionsOf(a.For(tier))
		if err != nil {
			s.fail("%s can't replace %s: %v", to, a.For(tier), err)
			return
		}
		set[of(a.Name, tier)] = whole.String()
	}
	if edit != nil {
		if err := liveedit.Edit(context.Background(), &s.settings, []limits.Guard{s.guard()}, liveedit.Change{}, edit); err != nil {
			s.fail("the live limits can't be changed: %v", err)
			return
		}
	}
	s.settings.versions[len(s.settings.versions)-1].set = set
	s.line("an operator changes the live limits to %v", set)
	s.stats["changes of the live limits"]++
}

// documents are what an instance has to follow: one of those that were in force
// shortly before its last good look.
type documents struct {
	since, until int64
	read, failed bool  // the look at hand
	clock        int64 // when it last looked, by its own clock
}

// Settings implements [live.Source] for one instance. Reads fail, and a read that is
// not consistent may return what was in force up to a second ago.
func (in *instance) Settings(_ context.Context, consistent bool) ([]byte, int64, error) {
	s := in.sim
	in.looked, in.follow.clock, in.follow.read = s.now, in.millis(), true
	if s.chance(8) || s.now < in.downUntil {
		in.follow.failed = true
		return nil, 0, errors.New("away")
	}
	at := s.now
	if !consistent && s.chance(5) {
		at -= s.upTo(1000)
	}
	d := s.settings.inForce(at)
	s.line("instance %d reads version %d of the live limits (consistent: %v)", in.number, d.version, consistent)
	return d.document, d.version, nil
}

// terms returns the limit that applies to a request on this instance, as the
// guard finds it. It judges that limit, and looks at the live limits if that is
// due.
func (in *instance) terms(activity, tier string) *terms {
	s := in.sim
	a, _ := in.follower.Limits().Activity(s.named(activity))
	t := s.of(a.For(tier))
	if !in.mayFollow(activity, tier, t.text) {
		s.fail("instance %d goes by the limit %s, which was not in force at its last look %d ms ago", in.number, t.text, s.now-in.looked)
	}
	if in.limiter.CircuitOpen() {
		return t
	}
	in.follow.read, in.follow.failed = false, false
	in.follower.Refresh(context.Background(), 0)()
	age := in.millis() - in.follow.clock
	switch {
	case in.follow.read && !in.follow.failed:
		in.follow.since, in.follow.until = s.now-1000, s.now
	case !in.follow.read && (age < 0 || age >= 30_000):
		s.fail("instance %d looked at the live limits %d ms ago by its clock, and does not look now", in.number, age)
	}
	return t
}

// mayFollow reports whether a limit was in force when the instance looked.
func (in *instance) mayFollow(activity, tier, text string) bool {
	versions := in.sim.settings.versions
	for i, v := range versions {
		ended := i+1 < len(versions) && versions[i+1].since <= in.follow.since
		if v.since <= in.follow.until && !ended && v.limit(in.sim.named(activity), tier) == text {
			return true
		}
	}
	return false
}

// sweep deletes what has expired, as cleanup does, or a part of it, as DynamoDB's
// TTL does.
func (s *sim) sweep() {
	now := (s.now + s.skew()) / 1000
	if s.chance(2) {
		swept, _ := table.Memory{Store: s.store}.Sweep(context.Background(), table.Sweep{Now: now})
		s.stats["expired items deleted"] += int(swept.Deleted)
		s.line("cleanup deletes %d items", swept.Deleted)
		return
	}
	s.store.DeleteFunc(func(_ ratelimit.Key, expires int64) bool {
		gone := expires < now
		if gone {
			s.stats["expired items deleted"]++
		}
		return gone
	})
}

// code draws the limits that the code has: one text of the subject, and sometimes
// another limit for a tier.
func (s *sim) code(subject subject) []limits.Activity {
	var activities []limits.Activity
	texts := strings.Split(s.share(subject.texts[s.random.IntN(len(subject.texts))]), "; ")
	for i, text := range texts {
		p := policy.Must(text)
		a := limits.Activity{Name: []string{"act", "other"}[i], Limit: p, Hold: subject.hold}
		if len(texts) > 1 {
			a.Group = "both"
		}
		if others := variations(p); s.chance(2) && len(others) > 0 {
			a.Tiers = limits.Tiers{premium: others[s.random.IntN(len(others))]}
		}
		activities = append(activities, a)
	}
	activities, err := link(activities)
	if err != nil {
		panic(err)
	}
	return activities
}

// link puts the limits of a group beside one another, as a guard does.
func link(activities []limits.Activity) ([]limits.Activity, error) {
	linked, err := limits.Guards{{Name: "g", Message: "m", Activities: activities}}.Link()
	if err != nil {
		return nil, err
	}
	return linked[0].Activities, nil
}
