package policy

import (
	"fmt"
	"math"
)

// fixed allows limit actions in each window of the clock. The first window
// begins in 1970, each window follows the one before, and all users have the
// same windows.
//
// Worst case: limit actions at the end of one window and limit at the start of
// the next one, so twice the limit almost at once.
//
// Each window has an item of its own. Its state is activityCount, the number of
// actions counted. For example, with 3/1m, the third action at 0:59 is allowed,
// and the fourth one is refused with a wait of 1 s. At 1:00 a new item starts
// at 0.
type fixed struct {
	limit  int64
	window int64 // milliseconds
}

const activityCount = "activityCount"

func makeFixed(r Rate, shared bool) (kind, error) {
	p := fixed{r.Limit, r.Window.Milliseconds()}
	switch {
	case shared && r.Limit == million:
		return nil, fmt.Errorf("limit is %d, want at most %d beside other limits", r.Limit, million-1)
	case shared:
		return sharedFixed{p}, nil
	}
	return p, nil
}

func (p fixed) item(now int64) (window, expires int64) {
	return p.key(now), expiry(p.end(now), clockSlack)
}

func (p fixed) take(_, n int64, _ uint64, s State) (Update, bool) {
	most := p.limit - n
	return Update{
		If:   [][]Term{{AtMost(activityCount, most)}},
		Acts: []Act{{Add, activityCount, n}},
	}, s[activityCount] <= most
}

func (p fixed) undo(now, at, n int64, s State) (Update, bool) {
	if p.key(now) != p.key(at) {
		return Update{}, false
	}
	return countDown(activityCount, n, s)
}

// countDown plans to subtract n from a counter that has at least n.
func countDown(attr string, n int64, s State) (Update, bool) {
	return Update{
		If:   [][]Term{{Within(attr, n, math.MaxInt64)}},
		Acts: []Act{{Add, attr, -n}},
		ByID: true,
	}, s[attr] >= n
}

func (p fixed) read(now, n int64, s State) Reading {
	r := Reading{
		Limit: p.limit, Window: millis(p.window),
		Used: s[activityCount], Remaining: max(0, p.limit-max(0, s[activityCount])),
		ResetAt: p.end(now), WindowKey: p.key(now), At: now,
	}
	if n > 0 && r.Used > p.limit-n {
		r.Wait = millis(p.end(now) - now)
	}
	return r
}

func (p fixed) key(now int64) int64 { return now / p.window }
func (p fixed) end(now int64) int64 { return (p.key(now) + 1) * p.window }

// sharedFixed is a fixed window whose item also holds other limits. That item
// serves forever, so the counter also carries the number of its window.
//
// Its state is w: a million times the number of the latest window with actions,
// plus the actions counted in that window. For example, 5 actions in window
// 28,333,334 are 28,333,334,000,005. In the next window every value below
// 28,333,335,000,000 reads as 0 actions.
type sharedFixed struct{ fixed }

const windowAndCount = "w"

func (p sharedFixed) item(now int64) (window, expires int64) {
	_, expires = p.fixed.item(now)
	return 0, expires
}

func (p sharedFixed) take(now, n int64, _ uint64, s State) (Update, bool) {
	empty := p.key(now) * million
	most := empty + p.limit - n
	if s[windowAndCount] <= empty {
		return Update{
			If:   [][]Term{{AtMost(windowAndCount, empty)}},
			Acts: []Act{{Set, windowAndCount, empty + n}},
		}, true
	}
	return Update{
		If:   [][]Term{{Within(windowAndCount, empty+1, most)}},
		Acts: []Act{{Add, windowAndCount, n}},
	}, s[windowAndCount] <= most // refused also if a clock ahead has begun the next window
}

func (p sharedFixed) undo(now, at, n int64, s State) (Update, bool) {
	empty := p.key(now) * million
	if p.key(now) != p.key(at) || s[windowAndCount] < empty+n || s[windowAndCount] >= empty+million {
		return Update{}, false
	}
	return Update{
		If:   [][]Term{{Within(windowAndCount, empty+n, empty+million-1)}},
		Acts: []Act{{Add, windowAndCount, -n}},
	}, true
}

func (p sharedFixed) read(now, n int64, s State) Reading {
	start := s[windowAndCount] / million * p.window // of the window in s
	from := max(now, start)
	used := max(0, s[windowAndCount]-p.key(from)*million)
	r := p.fixed.read(from, n, State{activityCount: used})
	if start > now { // a clock ahead has begun this window
		r.Remaining = 0
		if n > 0 {
			r.Wait += millis(start - now)
		}
	}
	r.At = now
	return r
}
