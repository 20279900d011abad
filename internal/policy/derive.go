package policy

import "cmp"

// Rates returns the numbers of each limit, for tables and pictures.
func (p Policy) Rates() []Rate {
	rates := make([]Rate, len(p.limits))
	for i, l := range p.limits {
		rates[i] = l.rate
	}
	return rates
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

// WithLimit returns p, a single limit, with n actions in each window. A burst
// keeps its proportion to the actions, rounded up. The error is that of [Parse]
// if the kind has no such limit.
//
// For example, bucket 10/1m burst 15 with the limit 20 is bucket 20/1m burst 30.
func (p Policy) WithLimit(n int64) (Policy, error) {
	r := p.limits[0].rate
	r.Limit, r.Burst = n, (r.Burst*n+r.Limit-1)/r.Limit
	return Parse(r.text())
}

// OptionsOf returns p with the options ahead and keep of q, unless p sets them
// itself. A burst is never taken from q. P and q must share a count, see
// [Share].
//
// For example, bucket 1/2s with the options of bucket 1/5s keep 1h is bucket
// 1/2s keep 1h.
func (p Policy) OptionsOf(q Policy) Policy {
	theirs := make(map[string]Rate, len(q.limits))
	for _, r := range q.Rates() {
		theirs[r.Name] = r
	}
	rates := p.Rates()
	for i, r := range rates {
		rates[i].Ahead = cmp.Or(r.Ahead, theirs[r.Name].Ahead)
		rates[i].Keep = cmp.Or(r.Keep, theirs[r.Name].Keep)
	}
	return must(newPolicy(rates))
}

// AtOnce returns p without places in later windows. It refuses what p delays. A
// policy that does not queue is returned unchanged.
func (p Policy) AtOnce() Policy {
	if !p.Queues() {
		return p
	}
	rates := p.Rates()
	for i := range rates {
		rates[i].Ahead = 0
	}
	return must(newPolicy(rates))
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
