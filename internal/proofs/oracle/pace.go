package oracle

import "slices"

// A pace is what a bucket promises, whatever its arithmetic: in any time t there
// are at most burst + t/interval actions. Clocks that differ by 2 s stretch t by 2 s,
// and what is given back can be taken again.
//
// The promise is about one interval and one burst. So the pace starts again if
// either changes, or if the bucket is reset.
type pace struct {
	interval, burst int64
	taken           []taken
}

// taken is what one request took from a bucket.
type taken struct {
	at, n int64
	freed int64 // what came before it and was given back after it
}

// take adds n actions of the moment at, and reports whether the promise holds.
func (p *pace) take(at, n, interval, burst int64) bool {
	if p.interval != interval || p.burst != burst {
		*p = pace{interval: interval, burst: burst}
	}
	p.taken = append(p.taken, taken{at: at, n: n})
	latest, got := int64(0), int64(0)
	for _, first := range slices.Backward(p.taken) {
		latest, got = max(latest, first.at), got+first.n
		if got > burst+first.freed+(latest-first.at+2000)/interval {
			return false
		}
	}
	const kept = 40 // enough for any burst here; older actions have come back
	p.taken = p.taken[max(0, len(p.taken)-kept):]
	return true
}

// back gives back n actions of the moment at. What has come back of them by itself
// is given back a second time.
func (p *pace) back(now, at, n int64) {
	i := slices.IndexFunc(p.taken, func(t taken) bool { return t.at == at && t.n >= n })
	if i >= 0 {
		p.taken[i].n -= min(n, p.taken[i].n)
	}
	for j := range p.taken {
		if j >= i {
			p.taken[j].freed += n
		} else {
			p.taken[j].freed += min(n, max(0, now-at)/p.interval+1)
		}
	}
}
