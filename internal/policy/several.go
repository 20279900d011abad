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
// Activities of a group share one item, too, and limits with the same name share a
// count. For example, with "posts: 10/1m, writes: 100/1h cost 2" and "writes: 100/1h"
// in one group, a post takes one of posts and 2 of writes, and a comment 1 of writes.

const (
	maxLimits = 8 // in one policy
	maxName   = 8 // letters in the name of a limit: names are part of every guard

	severalExample = "minute: 10/1m, day: 200/1d"
)

// newPolicy builds a policy from its rates and checks what concerns all of them.
func newPolicy(rates []Rate) (Policy, error) {
	if len(rates) > maxLimits {
		return Policy{}, fmt.Errorf("there are %d limits, want at most %d", len(rates), maxLimits)
	}
	p := Policy{limits: make([]limit, 0, len(rates))}
	named := len(rates) > 1 || rates[0].Name != ""
	for _, r := range rates {
		k, _ := kindNamed(r.Kind)
		if err := p.checkNext(r, k); err != nil && named {
			return Policy{}, err
		}
		made, err := k.make(r, named)
		if err == nil {
			err = cmp.Or(r.checkRoom(made), r.checkMax(made), r.checkPace(IDsKept))
		}
		if err != nil && named {
			err = fmt.Errorf("%s: %w", r.Name, err)
		}
		if err != nil {
			return Policy{}, err
		}
		p.limits = append(p.limits, limit{rate: r, kind: made, crosses: k.crosses})
	}
	p.index()
	return p, nil
}

// index sets what p remembers of its limits.
func (p *Policy) index() {
	p.max, p.highest = million, million
	for i := range p.limits {
		l := &p.limits[i]
		p.max, p.highest = min(p.max, l.max()), min(p.highest, l.rate.highest().Actions())
		switch l.kind.(type) {
		case reservoir:
			p.queue = l
		case log:
			p.log = l
		}
	}
	if p.queue != nil {
		p.max = 1
	}
}

// checkNext returns an error if a limit of the kind k can't stand beside p's limits.
func (p Policy) checkNext(r Rate, k Kind) error {
	_, taken := p.rate(r.Name)
	switch {
	case r.Name == "":
		return fmt.Errorf("a limit has no name; each of several limits has one, as in %s", severalExample)
	case len(r.Name) > maxName || strings.Trim(r.Name, "abcdefghijklmnopqrstuvwxyz") != "":
		return fmt.Errorf("name of a limit is %q, want 1 to %d letters a to z, as in %s", r.Name, maxName, severalExample)
	case taken:
		return fmt.Errorf("two limits have the name %q", r.Name)
	case len(p.limits) > 0 && r.Prepaid != p.Prepaid():
		return errors.New("one limit is prepaid and another is not, want all or none, because one update counts for all")
	case k.once && p.has(k.Name):
		return fmt.Errorf("two limits are of the kind %s, want at most one of them", k.Name)
	case p.has(k.apart):
		return errors.New("a lockout can't stand beside a reservoir, because a place that was given is not given back")
	}
	return nil
}

// has reports whether one of p's limits is of this kind.
func (p Policy) has(kind string) bool {
	return slices.ContainsFunc(p.limits, func(l limit) bool { return l.rate.Kind == kind })
}

// Rates returns the numbers of each limit, for tables and pictures.
func (p Policy) Rates() []Rate {
	rates := make([]Rate, len(p.limits))
	for i, l := range p.limits {
		rates[i] = l.rate
	}
	return rates
}

// Replace returns the text form of p with text instead of the limit with this name.
func (p Policy) Replace(name, text string) string {
	texts := make([]string, len(p.limits))
	for i, l := range p.limits {
		if texts[i] = l.rate.String(); l.rate.Name == name {
			texts[i] = name + ": " + text
		}
	}
	return strings.Join(texts, ", ")
}

// Part returns the text form of the limit with this name, without the name; empty: none.
func (p Policy) Part(name string) string {
	r, ok := p.rate(name)
	if !ok {
		return ""
	}
	return r.text()
}

// Each returns every limit of p as a policy of its own, without its name, in
// the order of [Policy.Rates].
func (p Policy) Each() []Policy {
	each := make([]Policy, len(p.limits))
	for i, l := range p.limits {
		each[i] = Must(l.rate.text())
	}
	return each
}

// WithDefaults returns p with the options in, ahead, keep, cost and max of q, unless p sets them
// itself: bucket 1/2s with the options of bucket 1/5s burst 3 keep 1h is bucket 1/2s
// keep 1h. A max of q that is below the limit of p becomes that limit. WithDefaults returns
// an error if the two can't share a count, see [CompatibleTiers], or if the cost is above a
// limit. It also returns one if p counts for longer than the items that q shares, see
// [Policy.Beside].
func (p Policy) WithDefaults(q Policy) (Policy, error) {
	rates := p.Rates()
	meant := Policy{limits: make([]limit, len(rates))}
	for i, r := range rates {
		theirs, _ := q.rate(r.Name)
		r.Cost = cmp.Or(r.Cost, theirs.Cost)
		if r.Max == 0 && theirs.Max > 0 {
			r.Max = max(r.Limit, theirs.Max)
		}
		if r.Unit != "" {
			r.Zone = cmp.Or(r.Zone, theirs.Zone)
		}
		meant.limits[i].rate = r
		r.Ahead, r.Keep = cmp.Or(r.Ahead, theirs.Ahead), cmp.Or(r.Keep, theirs.Keep)
		rates[i] = r
	}
	if err := CompatibleTiers(q, meant); err != nil {
		return Policy{}, err
	}
	p, err := newPolicy(rates)
	if err == nil && p.outlasts(q) {
		err = fmt.Errorf("%q counts for longer than the item that it shares is kept", p)
	}
	p.beside, p.costs = q.beside, q.costs
	return p, err
}

// outlasts reports whether a limit of p can count for longer than the items that q
// shares with others are kept. A limit of p can't if q's limit of the same name counts
// at least as long.
func (p Policy) outlasts(q Policy) bool {
	kept := int64(0)
	for _, k := range q.beside {
		least, _ := k.stays()
		kept = max(kept, least)
	}
	return q.beside != nil && slices.ContainsFunc(p.limits, func(l limit) bool {
		_, most := l.kind.stays()
		return most > kept && !slices.ContainsFunc(q.limits, func(code limit) bool {
			_, maxOfCode := code.kind.stays()
			return code.rate.Name == l.rate.Name && most <= maxOfCode
		})
	})
}

// Named reports whether the limits of p have names.
func (p Policy) Named() bool { return len(p.limits) > 0 && p.limits[0].rate.Name != "" }

// CompatibleTiers returns nil if a and b can be limits of one activity that count in the same
// items, as its tiers and live limits do. Otherwise it returns an error that names each
// reason. Both must have the same limits by name, which [CompatibleInGroup] and have the same cost.
// For example, 10/1m shares with 20/1m, but not with 10/1h, bucket 10/1m or 10/1m cost
// 2. A release by another cost would give back more than its check took.
func CompatibleTiers(a, b Policy) error {
	if len(a.limits) != len(b.limits) {
		return fmt.Errorf("%q has %s and %q has %d, want the same limits, because they share a count", a, count(len(a.limits)), b, len(b.limits))
	}
	return compatible(a, b, true)
}

// CompatibleInGroup returns nil if a and b can be limits of two activities that count in the same
// items, and otherwise an error that names each reason why they cannot. Limits with the
// same name must have the same kind and, except for buckets, the same window. Their
// numbers and costs may differ, but not those of a lockout. Limits with other names do not meet.
func CompatibleInGroup(a, b Policy) error { return compatible(a, b, false) }

// compatible does what CompatibleInGroup does. With all, it does what CompatibleTiers does for policies that have
// equally many limits.
func compatible(a, b Policy, all bool) error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, l := range b.limits {
		r, what, in := l.rate, fmt.Sprintf("%q", b), ""
		if r.Name != "" {
			what, in = fmt.Sprintf("limit %q of %q", r.Name, b), "in "
		}
		our, ok := a.rate(r.Name)
		k, _ := kindNamed(our.Kind)
		switch {
		case !ok && !all:
		case !ok && r.Name == "":
			problem("%q has no name, want one as in %q, with which it shares a count", b, a)
		case !ok:
			problem("%q has no limit named %q, but %q has one, and they share a count", a, r.Name, b)
		case our.Kind != r.Kind:
			meant := Rate{Name: our.Name, Kind: our.Kind, Limit: r.Limit, Window: r.Window, Unit: r.Unit, Zone: r.Zone, Lock: our.Lock, MaxLock: our.MaxLock}
			problem("%s counts in another way than %s%q, with which it shares a count; did you mean %q?", what, in, a, meant.String())
		case our.span() != r.span() && !k.anyWindow:
			problem("window of %s is %s, want %s as in %q, with which it shares a count", what, r.span(), our.span(), a)
		case !all && k.alike && our != r:
			problem("%s is %s, want %s as in %q, because a lock of one is a lock of both", what, r.text(), our.text(), a)
		}
		switch {
		case !ok:
		case our.Max > 0 && r.Max == 0:
			problem("%s has no max, but %s%q has one, and they share a count", what, in, a)
		case our.Max == 0 && r.Max > 0:
			problem("%s has a max, but %s%q has none, and they share a count", what, in, a)
		}
		if all && ok && our.Cost != r.Cost {
			problem("cost of %s is %d, want %d as in %q, with which it shares a count", what, r.cost(), our.cost(), a)
		}
	}
	return errors.Join(problems...)
}

// FullName returns the name of a limit among those of an activity and its subjects, such as
// room.minute. The only limit of the user has the name of the activity, and the only one of a
// subject has the subject's name. An empty subject is the user.
func FullName(activity, subject, limit string) string {
	switch {
	case subject == "":
		return cmp.Or(limit, activity)
	case limit == "":
		return subject
	}
	return subject + "." + limit
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

func count(limits int) string {
	if limits == 1 {
		return "1 limit"
	}
	return fmt.Sprintf("%d limits", limits)
}

// A pacer is a kind whose actions come back at a pace that limits which share a count can
// differ in.
type pacer interface {
	repace(now int64, s State) (u Update, slower bool)
}

// Repace plans to record a slower pace of p in an item with state s that refuses actions of
// p. It counts nothing, and the item then matters until expires, in Unix seconds. It returns
// false if no pace has to be recorded, as in nearly all items.
func (p Policy) Repace(now int64, s State) (u Update, expires int64, ok bool) {
	if !slices.ContainsFunc(p.limits, func(l limit) bool { _, can := l.kind.(pacer); return can }) {
		return u, 0, false // each refusal asks
	}
	parts := p.parts(s)
	if p.Named() {
		now = p.latest(now, parts)
	}
	for i, l := range p.limits {
		k, can := l.kind.(pacer)
		if !can {
			continue
		}
		if one, slower := k.repace(now, parts[i]); slower {
			u.add(l, one, parts[i])
			ok = true
		}
	}
	if ok {
		expires = p.KeptUntil(now, u.Apply(s))
	}
	return u, expires, ok
}

// KeptUntil returns until when an item with state s matters, in Unix seconds. That can be later
// than [Policy.Item] tells, if another tier, number or live limit has counted in it. For example,
// a tier may wait for places of a reservoir for 15 minutes, and another one for 5.
func (p Policy) KeptUntil(now int64, s State) int64 {
	_, expires := p.Item(now)
	for i, part := range p.parts(s) {
		_, until := p.limits[i].kind.item(now, part)
		expires = max(expires, until)
	}
	return expires
}
