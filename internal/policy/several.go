package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Several limits on one activity share one item, so either all of them count an
// action or none does. Each limit keeps its attributes under its own name: the limit
// "minute" keeps its s as minute_s. The order of the limits does not matter.
//
// Activities of a group share one item, too. Each of their limits has a name, also
// a single one, and limits with the same name share a count. For example, with
// "posts: 10/1m, writes: 100/1h cost 2" and "writes: 100/1h" in one group, a post takes
// one of posts and 2 of writes, and a comment takes 1 of writes. The guard of an
// update names only the activity's own limits, so no expression grows.

const (
	mostLimits  = 8 // in one policy
	longestName = 8 // letters in the name of a limit: names are part of every guard

	severalExample = "minute: 10/1m, day: 200/1d"
)

// newPolicy builds a policy from its rates and checks what concerns all of them.
func newPolicy(rates []Rate) (Policy, error) {
	if len(rates) > mostLimits {
		return Policy{}, fmt.Errorf("there are %d limits, want at most %d", len(rates), mostLimits)
	}
	p := Policy{limits: make([]limit, len(rates)), most: million}
	named := len(rates) > 1 || rates[0].Name != ""
	seen := make(map[string]bool, len(rates))
	for i, r := range rates {
		if err := checkName(r.Name, named, seen[r.Name]); err != nil {
			return Policy{}, err
		}
		seen[r.Name] = true
		k, _ := kindNamed(r.Kind)
		made, err := k.make(r, named)
		if err == nil {
			err = cmp.Or(r.checkCost(made), r.checkPrepaid(made), r.checkPace(IDsKept))
		}
		if err != nil && r.Name != "" {
			err = fmt.Errorf("%s: %w", r.Name, err)
		}
		if err != nil {
			return Policy{}, err
		}
		p.limits[i] = limit{r, made, k.crosses}
		p.most = min(p.most, p.limits[i].read(0, 0, nil).Limit)
		if _, ok := made.(queue); ok {
			p.queue = &p.limits[i]
			p.most = 1
		}
	}
	err := p.checkKinds()
	if err == nil && p.queue != nil && p.queue.rate.Ahead > 0 {
		atOnce := slices.Clone(rates)
		for i := range atOnce {
			atOnce[i].Ahead = 0
		}
		p.atOnce = new(must(newPolicy(atOnce)))
	}
	return p, err
}

// checkName returns an error if a limit's name is wrong. Named is set if the limits
// need names, and seen if another limit has the same name.
func checkName(name string, named, seen bool) error {
	switch {
	case !named:
		return nil
	case seen:
		return fmt.Errorf("two limits have the name %q", name)
	case name == "":
		return fmt.Errorf("a limit has no name; each of several limits has one, as in %s", severalExample)
	case len(name) > longestName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "":
		return fmt.Errorf("name of a limit is %q, want 1 to %d letters a to z, as in %s", name, longestName, severalExample)
	}
	return nil
}

// checkKinds returns an error if a kind that may occur only once occurs twice.
func (p Policy) checkKinds() error {
	seen := map[string]bool{}
	for _, l := range p.limits {
		if k, _ := kindNamed(l.rate.Kind); k.once && seen[k.Name] {
			return fmt.Errorf("two limits are of the kind %s, want at most one of them", k.Name)
		}
		if l.rate.Prepaid != p.limits[0].rate.Prepaid {
			return errors.New("one limit is prepaid and another is not, want all or none, because one update counts for all")
		}
		seen[l.rate.Kind] = true
	}
	return nil
}

// Rates returns the numbers of each limit, for tables and pictures.
func (p Policy) Rates() []Rate {
	rates := make([]Rate, len(p.limits))
	for i, l := range p.limits {
		rates[i] = l.rate
	}
	return rates
}

// Replace returns the text form of p with text, such as 200/1h, in place of the limit with
// this name.
func (p Policy) Replace(name, text string) string {
	texts := make([]string, len(p.limits))
	for i, l := range p.limits {
		if texts[i] = l.rate.text(); l.rate.Name == name {
			texts[i] = name + ": " + text
		}
	}
	return strings.Join(texts, ", ")
}

// Part returns the text form of the limit with this name, without the name. It is empty
// if p has no such limit.
func (p Policy) Part(name string) string {
	r, ok := p.rate(name)
	if r.Name = ""; !ok {
		return ""
	}
	return r.text()
}

// Each returns every limit of p as a policy of its own, without its name, in
// the order of [Policy.Rates].
func (p Policy) Each() []Policy {
	each := make([]Policy, len(p.limits))
	for i, r := range p.Rates() {
		r.Name = ""
		each[i] = must(newPolicy([]Rate{r}))
	}
	return each
}

// Window returns the window in which now lies. It returns false if p has several limits,
// or a limit that has no windows: a bucket or a log.
func (p Policy) Window(now int64) (Window, bool) {
	one, ok := p.single()
	if !ok {
		return Window{}, false
	}
	if k, ok := one.kind.(fixed); ok {
		return k.at(now), true
	}
	if one.kind.read(Latest, 0, nil).WindowKey == 0 {
		return Window{}, false
	}
	return fixed{window: one.rate.Window.Milliseconds()}.at(now), true
}

// WithLimit returns p, a single limit, with n actions in each window. A burst
// keeps its proportion to the actions, rounded up. The error is that of [Parse]
// if the kind has no such limit.
//
// For example, bucket 10/1m burst 15 with the limit 20 is bucket 20/1m burst 30.
func (p Policy) WithLimit(n int64) (Policy, error) {
	r := p.limits[0].rate
	n *= r.cost()
	r.Limit, r.Burst = n, (r.Burst*n+r.Limit-1)/r.Limit
	return Parse(r.text())
}

// OptionsOf returns p with the options in, ahead, keep and cost of q, unless p sets them
// itself. A burst is never taken. It returns an error if the two can't share a count,
// see [Share], if the cost is above a limit, or if p counts for longer than the items
// that q shares with others, see [Policy.Beside].
//
// For example, bucket 1/2s with those of bucket 1/5s keep 1h is bucket 1/2s keep 1h.
func (p Policy) OptionsOf(q Policy) (Policy, error) {
	rates := p.Rates()
	meant := Policy{limits: make([]limit, len(rates))}
	for i, r := range rates {
		theirs, _ := q.rate(r.Name)
		r.Cost = cmp.Or(r.Cost, theirs.Cost)
		if r.Unit != "" {
			r.Zone = cmp.Or(r.Zone, theirs.Zone)
		}
		meant.limits[i].rate = r
		r.Ahead, r.Keep = cmp.Or(r.Ahead, theirs.Ahead), cmp.Or(r.Keep, theirs.Keep)
		rates[i] = r
	}
	if err := Share(q, meant); err != nil {
		return Policy{}, err
	}
	p, err := newPolicy(rates)
	if err == nil && q.beside != nil && lasts(p.limits) > lasts(q.beside) {
		err = fmt.Errorf("%q counts for longer than the item that it shares is kept", p)
	}
	p.beside = q.beside
	return p, err
}

// lasts returns until when at least an item matters that limits count in at 0. Windows of
// the clock add nothing, because one can end at once.
func lasts(limits []limit) (longest int64) {
	for _, l := range limits {
		if _, expires := l.kind.item(0); l.kind.read(Latest, 0, nil).WindowKey == 0 {
			longest = max(longest, expires)
		}
	}
	return longest
}

// AtOnce returns p without places in later windows. It refuses what p delays. A
// policy that does not queue is returned unchanged.
func (p Policy) AtOnce() Policy {
	q := *cmp.Or(p.atOnce, &p)
	q.beside = p.beside
	return q
}

// Skip returns s as if p had given every place before readyAt. It changes
// nothing else, and nothing at all in a policy that does not queue.
func (p Policy) Skip(readyAt int64, s State) State {
	if !p.Queues() {
		return s
	}
	attr, least := p.queue.kind.(queue).skip(readyAt)
	attr = p.queue.attr(attr)
	return Update{Acts: []Act{{Set, attr, max(s[attr], least)}}}.Apply(s)
}

// Named reports whether the limits of p have names, as those of a group do.
func (p Policy) Named() bool { return len(p.limits) > 0 && p.limits[0].rate.Name != "" }

// Share returns nil if a and b can be limits of one activity that count in the same
// items, and otherwise an error that names each reason why they cannot. The tiers of
// one activity do so, and so do a limit and the live limit that replaces it.
//
// Both policies must have the same limits by name, which [Meet] and have the same
// cost. For example, 10/1m shares with 20/1m, but not with 10/1h, bucket 10/1m or
// 10/1m cost 2: a release by another cost would give back more than its check took.
func Share(a, b Policy) error {
	if len(a.limits) != len(b.limits) {
		return fmt.Errorf("%q has %s and %q has %d, want the same limits, because they share a count", a, count(len(a.limits)), b, len(b.limits))
	}
	problems := []error{Meet(a, b)}
	for _, l := range b.limits {
		our, ok := a.rate(l.rate.Name)
		switch {
		case !ok && l.rate.Name == "":
			problems = append(problems, fmt.Errorf("%q has no name, want one as in %q, with which it shares a count", b, a))
		case !ok:
			problems = append(problems, fmt.Errorf("%q has no limit named %q, but %q has one, and they share a count", a, l.rate.Name, b))
		case our.Cost != l.rate.Cost:
			problems = append(problems, fmt.Errorf("cost of %s is %d, want %d as in %q, with which it shares a count", l.of(b), l.rate.cost(), our.cost(), a))
		}
	}
	return errors.Join(problems...)
}

// Meet returns nil if a and b can be limits of two activities that count in the same
// items, and otherwise an error that names each reason why they cannot. Limits with the
// same name must have the same kind and, except for buckets, the same window. Their
// numbers and costs may differ. Limits with other names do not meet.
func Meet(a, b Policy) error {
	var problems []error
	for _, l := range b.limits {
		our, ok := a.rate(l.rate.Name)
		k, _ := kindNamed(our.Kind)
		meant, in := Rate{Name: our.Name, Kind: our.Kind, Limit: l.rate.Limit, Window: l.rate.Window, Unit: l.rate.Unit, Zone: l.rate.Zone}, ""
		if our.Name != "" {
			in = "in "
		}
		switch {
		case !ok:
		case our.Kind != l.rate.Kind:
			problems = append(problems, fmt.Errorf("%s counts in another way than %s%q, with which it shares a count; did you mean %q?", l.of(b), in, a, meant.text()))
		case our.span() != l.rate.span() && !k.anyWindow:
			problems = append(problems, fmt.Errorf("window of %s is %s, want %s as in %q, with which it shares a count", l.of(b), l.rate.span(), our.span(), a))
		}
	}
	return errors.Join(problems...)
}

// rate returns the numbers of the limit with this name. It returns false if p has none.
func (p Policy) rate(name string) (Rate, bool) {
	for _, l := range p.limits {
		if l.rate.Name == name {
			return l.rate, true
		}
	}
	return Rate{}, false
}

// of names l, a limit of p, in a message.
func (l limit) of(p Policy) string {
	if l.rate.Name == "" {
		return fmt.Sprintf("%q", p)
	}
	return fmt.Sprintf("limit %q of %q", l.rate.Name, p)
}

func count(limits int) string {
	if limits == 1 {
		return "1 limit"
	}
	return fmt.Sprintf("%d limits", limits)
}
