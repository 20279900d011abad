package policy

import "cmp"

// A limit is one part of a policy.
type limit struct {
	rate    Rate
	kind    kind
	crosses []int64 // as in Kind
	given   bool    // the caller gave the number of rate
	short   bool    // that number is below the cost, so that not even one action fits
}

// max returns the most actions that l can take at once.
func (l *limit) max() int64 { return l.read(0, 0, nil).Limit }

// take, undo and read do what the methods of the kind do, in actions. The kind counts
// in units, and an action takes as many units as its cost.
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
// counted at now, and in each of its limits. It is 100 if the n actions left less than one
// action of the cheapest cost, see [Policy.Beside]. Otherwise it is 80 if they raised the
// count to 80 % of the limit, rounded up, and else 0. Only a fixed window has it, and a
// lockout the 100 of the attempt that locks. So at most one request in a window, or before
// a lock, crosses each share, unless actions are given back. For example, with 10/1m, one
// action that raises Used from 7 to 8 crosses 80, and three that raise it to 10 cross 100.
// With 100/1h cost 7, the 14th action crosses 100: 98 are used, and 2 are left.
func (p Policy) Cross(now, n int64, s State, r Reading) Reading {
	if !p.Named() {
		r.Crossed = p.crossed(&p.limits[0], now, n, r, s)
	}
	for i, one := range r.Each {
		r.Each[i].Crossed = p.crossed(&p.limits[i], now, n, one, s)
		if one.Name == r.Name {
			r.Crossed = r.Each[i].Crossed
		}
	}
	return r
}

// crossed returns the highest share of l that n actions reached. It compares units: with
// mixed costs, rounded actions could reach a share twice, or never.
func (p Policy) crossed(l *limit, at, n int64, r Reading, s State) int64 {
	cost, units := l.rate.cost(), r.Used
	cheapest := min(cost, cmp.Or(p.costs[l.rate.Name], cost)) // in p and in the policies beside it
	if cost > 1 && l.crosses != nil {
		units = l.kind.read(at, 0, l.mine(s)).Used
	}
	for _, share := range l.crosses {
		least := l.rate.Limit - cheapest + 1
		if share < 100 {
			least = (l.rate.Limit*share + 99) / 100
		}
		if units-n*cost < least && least <= units {
			return share
		}
	}
	return 0
}
