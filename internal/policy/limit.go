package policy

// A limit is one part of a policy.
type limit struct {
	rate    Rate
	kind    kind
	crosses bool // as in Kind
}

// take, undo and read do what the methods of the kind do, in actions: the kind counts
// in units, of which an action takes as many as its cost.
func (l *limit) take(now, n int64, seed uint64, s State) (Update, bool) {
	return l.kind.take(now, n*l.rate.cost(), seed, s)
}

func (l *limit) undo(now, at, n int64, s State) (Update, bool) {
	if n > million/l.rate.cost() {
		return Update{}, false
	}
	return l.kind.undo(now, at, n*l.rate.cost(), s)
}

func (l *limit) read(now, n int64, s State) Reading {
	cost := l.rate.cost()
	r := l.kind.read(now, n*cost, s)
	if cost > 1 {
		r.Limit, r.Used, r.Remaining = r.Limit/cost, (max(0, r.Used)+cost-1)/cost, max(0, r.Remaining)/cost
	}
	return r
}

// Cross sets Crossed in r, which holds the figures of s right after n actions were
// counted at now, and in each of its limits. It is 100 if the n actions raised the count to
// the limit, otherwise 80 if they raised it to 80 % of the limit, rounded up, and
// otherwise 0. Only a fixed window has it. So at most one request in a window crosses
// each share, unless actions are given back. For example, with 10/1m, one action that
// raises Used from 7 to 8 crosses 80, and three that raise it to 10 cross 100.
func (p Policy) Cross(now, n int64, s State, r Reading) Reading {
	if one, ok := p.single(); ok && one.crosses {
		r.Crossed = one.crossed(now, n, r, s)
	}
	for i := range r.Each {
		if l := &p.limits[i]; l.crosses {
			r.Each[i].Crossed = l.crossed(now, n, r.Each[i], s)
		}
		if r.Each[i].Name == r.Name {
			r.Crossed = r.Each[i].Crossed
		}
	}
	return r
}

// crossed returns the highest share of the limit that n actions reached. It compares
// units: with mixed costs, rounded actions could reach a share twice, or never.
func (l *limit) crossed(at, n int64, r Reading, s State) int64 {
	cost, units := l.rate.cost(), r.Used
	if cost > 1 {
		units = l.kind.read(at, 0, l.mine(s)).Used
	}
	for _, percent := range []int64{100, 80} {
		if least := (l.rate.Limit*percent + 99) / 100; units-n*cost < least && least <= units {
			return percent
		}
	}
	return 0
}
