package guards

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

const (
	maxSubjects    = 3
	maxSubjectName = 8
	maxName        = 36 // of an activity, a group and a tier
	maxDescription = 256
	minMemory      = 128 // MB
	maxMemory      = 10240

	// minQueueWindow is the shortest window that a job from a queue is in time for. SQS delays
	// a message by whole seconds, so a job comes up to a second after its place begins.
	minQueueWindow = 2 * time.Second

	// letters are the letters of names. A tier's name, which stands in Go, in JSON and in a
	// table of Markdown, has more.
	letters     = "abcdefghijklmnopqrstuvwxyz"
	tierLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + letters + "0123456789_-"
)

// Validate returns all mistakes in the guards of a page, joined by [errors.Join]; nil if
// there is none. Each error names the guard and the activity, what was read and what is
// accepted. The command line of a project validates the page, and so does each function
// when it starts.
func Validate(all []Guard) error {
	if len(all) == 0 {
		return errors.New("limits.go lists no guard in All, want at least one")
	}
	v := validation{guards: all, read: map[Limit]reading{}}
	for i, g := range all {
		v.guard(all[:i], g)
		for j, a := range g.Activities {
			v.where = fmt.Sprintf("%s, activity %q: ", g.Name, a.Name)
			v.unique(all[:i], g.Activities[:j], a)
			v.activity(a)
		}
		v.where = ""
	}
	v.groups()
	return errors.Join(v.mistakes...)
}

// A validation is a page and the mistakes that were found so far.
type validation struct {
	guards   []Guard
	where    string // what each mistake begins with
	mistakes []error
	read     map[Limit]reading // so far: the pairs of a large group ask for the same limits
}

// A reading is what a limit says.
type reading struct {
	policy policy.Policy
	err    error
}

// policy reads a limit, each text once.
func (v *validation) policy(l Limit) (policy.Policy, error) {
	r, ok := v.read[l]
	if !ok {
		r.policy, r.err = l.policy()
		v.read[l] = r
	}
	return r.policy, r.err
}

// wrong adds a mistake.
func (v *validation) wrong(format string, args ...any) {
	v.mistakes = append(v.mistakes, fmt.Errorf("%s%w", v.where, fmt.Errorf(format, args...)))
}

// guard checks what concerns a whole guard. Others are those before it.
func (v *validation) guard(others []Guard, g Guard) {
	if g.Name == "" || g.Message == "" || len(g.Activities) == 0 {
		v.wrong("guard %q needs a name, a message and activities", g.Name)
	}
	if n := len(g.Description); n > maxDescription {
		v.wrong("%s: Description has %d bytes, want at most %d, as Lambda allows", g.Name, n, maxDescription)
	}
	if g.MemorySize != 0 && (g.MemorySize < minMemory || g.MemorySize > maxMemory) {
		v.wrong("%s: MemorySize is %d, want %d to %d, or 0 for the one of Globals", g.Name, g.MemorySize, minMemory, maxMemory)
	}
	if g.DelayedQueue {
		v.queue(g)
	}
	for _, other := range others {
		if other.Name == g.Name {
			v.wrong("two guards have the name %s: give each guard a name of its own", g.Name)
		}
		if other.DelayedQueue && g.DelayedQueue {
			v.wrong("%s and %s have a DelayedQueue, but there is one queue: move the activities of %[2]s to %[1]s", other.Name, g.Name)
		}
	}
}

// queue checks that a guard with a queue has jobs that wait there, in windows that are
// long enough. Tiers and live limits have the same windows.
func (v *validation) queue(g Guard) {
	queues := false
	for _, a := range g.Activities {
		limit, _ := v.policy(a.Limit)
		for _, p := range limit.Each() {
			if !p.Queues() {
				continue
			}
			queues = true
			if p.Rates()[0].Window < minQueueWindow {
				v.wrong("%s, activity %q: limit is %q, want a window of at least %v for the delayed queue, because SQS delivers a job up to a second late",
					g.Name, a.Name, p, minQueueWindow)
			}
		}
	}
	if !queues {
		v.wrong("%s: it has a DelayedQueue, and no activity with a reservoir whose jobs wait there", g.Name)
	}
}

// unique checks that no activity before a has its name, and that no activity at all has
// the name of one of its subjects.
func (v *validation) unique(others []Guard, before []Activity, a Activity) {
	if slices.ContainsFunc(before, func(b Activity) bool { return b.Name == a.Name }) {
		v.wrong("listed twice")
	}
	if other := guardOf(others, a.Name); other != "" {
		v.wrong("%s has an activity of this name; give each activity a name of its own", other)
	}
	for _, s := range a.Subjects {
		if other := guardOf(v.guards, s.Name); other != "" && s.Name != a.Name {
			v.wrong("its subject %q has the name of an activity of %s; give the subject a name of its own", s.Name, other)
		}
	}
}

// guardOf returns the guard of the activity with this name, or nothing.
func guardOf(all []Guard, activity string) string {
	for _, g := range all {
		if slices.ContainsFunc(g.Activities, func(a Activity) bool { return a.Name == activity }) {
			return g.Name
		}
	}
	return ""
}

// activity checks an activity by itself.
func (v *validation) activity(a Activity) {
	v.name("name", a.Name)
	if a.Group != "" {
		v.name("group", a.Group)
	}
	if a.Unlimited {
		if a.Limit != "" || len(a.Tiers) > 0 || len(a.Subjects) > 0 || a.Group != "" || a.Hold {
			v.wrong("it is unlimited and has a limit, a group, subjects or Hold")
		}
		return
	}
	if a.Limit == "" {
		v.wrong("it has no limit and is not marked Unlimited")
	}
	v.limits(a, a.Limit, a.Tiers)
	if n := len(a.Subjects); n > maxSubjects {
		v.wrong("it has %d subjects, want at most %d", n, maxSubjects)
	}
	where := v.where
	for i, s := range a.Subjects {
		v.where = where
		v.subject(a, a.Subjects[:i], s)
		v.where = fmt.Sprintf("%ssubject %q: ", where, s.Name)
		v.limits(a, s.Limit, s.Tiers)
	}
	v.where = where
}

// name checks the name of an activity or a group.
func (v *validation) name(what, name string) {
	if n := len(name); n < 1 || n > maxName {
		v.wrong("%s has %d characters, want 1 to %d", what, n, maxName)
		return
	}
	if i := strings.IndexFunc(name, func(c rune) bool { return !strings.ContainsRune(letters+"_", c) }); i >= 0 {
		v.wrong("%s contains %q, want a to z and _", what, []rune(name[i:])[0])
		return
	}
	if strings.Trim(name, "_") != name { // such as __proto__, which is no ordinary key in JavaScript
		v.wrong("%s is %q, want it to begin and end with a letter", what, name)
	}
}

// subject checks the name of a subject of a, and that it has a limit of a kind that it can
// have. Others are the subjects before it.
func (v *validation) subject(a Activity, others []Subject, s Subject) {
	own, _ := v.policy(a.Limit)
	limit, _ := v.policy(s.Limit)
	if n := len(s.Name); n < 1 || n > maxSubjectName || strings.Trim(s.Name, letters) != "" {
		v.wrong("name of a subject is %q, want 1 to %d letters a to z, such as room", s.Name, maxSubjectName)
		return
	}
	if s.Name == a.Name || own.Part(s.Name) != "" || slices.ContainsFunc(others, func(other Subject) bool { return other.Name == s.Name }) {
		v.wrong("subject %q: the activity, a limit or another subject has that name", s.Name)
	}
	if s.Limit == "" {
		v.wrong("subject %q has no limit", s.Name)
	}
	if limit.Queues() || own.Queues() {
		v.wrong("subject %q: a reservoir gives places to users alone; want another kind of limit beside a subject", s.Name)
	}
}

// limits checks the limit and the tiers of an activity a or of one of its subjects.
func (v *validation) limits(a Activity, limit Limit, tiers Tiers) {
	p, err := v.policy(limit)
	if err != nil {
		v.wrong("%w", err)
	}
	v.limit(a, p)
	where := v.where
	for _, name := range slices.Sorted(maps.Keys(tiers)) {
		v.where = where
		if n := len(name); n < 1 || n > maxName || strings.Trim(name, tierLetters) != "" {
			v.wrong("tier is %q, want 1 to %d of A to Z, a to z, 0 to 9, _ and -", name, maxName)
		}
		if tiers[name] == "" {
			v.wrong("tier %q has no limit", name)
			continue
		}
		v.where = fmt.Sprintf("%stier %q: ", where, name)
		tier, err := v.policy(tiers[name])
		if err == nil && !p.IsZero() {
			err = policy.CompatibleTiers(p, tier) // then any two tiers can share, too
		}
		if err != nil {
			v.wrong("%w", err)
			continue
		}
		v.hold(a, tier)
	}
	v.where = where
}

// limit checks the ordinary limit of an activity or of one of its subjects.
func (v *validation) limit(a Activity, p policy.Policy) {
	if p.IsZero() {
		return
	}
	if a.Group == "" && p.Named() && len(p.Rates()) == 1 {
		v.wrong("limit %q has a name, want one only if there are several limits or a group", p)
	}
	if a.Group != "" && !p.Named() {
		v.wrong("limit %q has no name, want one in the group %q, as in \"writes: %[1]s\"", p, a.Group)
	}
	v.hold(a, p)
}

// hold checks that a limit is slow enough for an activity that holds its receipts.
func (v *validation) hold(a Activity, p policy.Policy) {
	if err := p.CheckHold(); a.Hold && err != nil {
		v.wrong("%w", err)
	}
}

// groups checks that the activities of each group can count in one item.
func (v *validation) groups() {
	var grouped []Activity
	for _, g := range v.guards {
		for _, a := range g.Activities {
			if a.Group == "" || a.Unlimited {
				continue
			}
			if other := guardOf(v.guards, a.Group); other != "" {
				v.wrong("activity %q: its group has the name of the activity %q of %s; give the group a name of its own", a.Name, a.Group, other)
			}
			for _, other := range grouped {
				if other.Group == a.Group {
					v.meet(other, a)
				}
			}
			grouped = append(grouped, a)
		}
	}
}

// meet checks that two activities can count in one item, and so can each subject that both
// have.
func (v *validation) meet(a, b Activity) {
	check := func(limitA, limitB Limit, tiersA, tiersB Tiers) {
		tiers := slices.AppendSeq(slices.Collect(maps.Keys(tiersA)), maps.Keys(tiersB))
		slices.Sort(tiers)
		for _, tier := range append([]string{""}, slices.Compact(tiers)...) {
			p, err1 := v.policy(cmp.Or(tiersA[tier], limitA))
			q, err2 := v.policy(cmp.Or(tiersB[tier], limitB))
			if err := policy.CompatibleInGroup(p, q); err1 == nil && err2 == nil && err != nil {
				v.wrong("activities %q and %q of the group %q: %w", a.Name, b.Name, a.Group, err)
				return // a tier has the window of the ordinary limit
			}
		}
	}
	check(a.Limit, b.Limit, a.Tiers, b.Tiers)
	for _, s := range a.Subjects {
		for _, other := range b.Subjects {
			if s.Name == other.Name {
				check(s.Limit, other.Limit, s.Tiers, other.Tiers)
			}
		}
	}
}
