package histories_test

// reservoir gives limit places in each window, in order.
type reservoir struct {
	windows
	ahead int64
}

func (p reservoir) take(a account, now, _, _ int64) (account, int64, bool) {
	key := max(p.key(now), a.last())
	if a.counts[key] >= p.limit {
		key++
	}
	return a.count(key, 1), key * p.window, key <= p.key(now+p.ahead)
}

func (p reservoir) undo(a account, _, _, _ int64) (account, bool) { return a, false }

func (p reservoir) used(a account, now int64) int64 {
	if a.last() > p.key(now) {
		return p.limit
	}
	return a.counts[p.key(now)]
}

func (p reservoir) resetAt(a account, now int64) int64 {
	if a.last() < p.key(now) {
		return now
	}
	return p.end(a.last())
}

// waiting returns the places in later windows, up to and including the window
// of place.
func (p reservoir) waiting(a account, now, place int64) int64 {
	key := p.key(place)
	given := p.limit
	if key == a.last() {
		given = a.counts[key]
	}
	return max(0, (key-p.key(now)-1)*p.limit+given)
}
