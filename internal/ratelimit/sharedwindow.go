package ratelimit

import "time"

// sharedWindow is a fixed window whose item has other limits in it, and so
// serves for ever.
type sharedWindow struct{ FixedWindow }

const windowAndCount = "w"

func (p sharedWindow) Place(now int64) Place {
	return Place{Expires: p.FixedWindow.Place(now).Expires}
}

func (p sharedWindow) Plan(now, n int64) Plan {
	none := p.key(now) * million
	most := none + p.Limit - n
	return func(s State) (Update, bool) {
		switch w := s[windowAndCount]; {
		case w > most || n > p.Limit: // also where a clock ahead has begun the next window
			return Update{}, false
		case w <= none:
			return Update{
				If:   [][]Term{{AtMost(windowAndCount, none)}},
				Acts: []Act{{Set, windowAndCount, none + n}},
			}, true
		}
		return Update{
			If:   [][]Term{{Within(windowAndCount, none+1, most)}},
			Acts: []Act{{Add, windowAndCount, n}},
		}, true
	}
}

// Release gives nothing back where the window has passed, or none has begun:
// nothing counts there.
func (p sharedWindow) Release(now, at, n int64) (Plan, bool) {
	none := p.key(now) * million
	return func(s State) (Update, bool) {
		w := s[windowAndCount]
		switch {
		case p.key(at) != p.key(now):
			return Update{}, true
		case w < none:
			return Update{If: [][]Term{{AtMost(windowAndCount, none-1)}}}, true
		}
		return Update{
			If:   [][]Term{{Within(windowAndCount, none+n, none+million-1)}},
			Acts: []Act{{Add, windowAndCount, -n}},
		}, none+n <= w && w < none+million
	}, true
}

func (p sharedWindow) Figures(now int64, s State) Figures {
	f := p.FixedWindow.Figures(max(now, p.start(s)), State{activityCount: p.used(now, s)})
	f.WindowKey = 0 // each limit has another
	if p.start(s) > now {
		f.Remaining = 0
	}
	return f
}

func (p sharedWindow) Wait(now, n int64, s State) time.Duration {
	if p.used(now, s) <= p.Limit-n {
		return millis(max(0, p.start(s)-now))
	}
	return millis(p.end(max(now, p.start(s))) - now)
}

// used is the count of the window of now or, if a clock ahead has begun it, a
// later one.
func (p sharedWindow) used(now int64, s State) int64 {
	return max(0, s[windowAndCount]-p.key(max(now, p.start(s)))*million)
}

// start is when the window in s began.
func (p sharedWindow) start(s State) int64 {
	return s[windowAndCount] / million * p.Window.Milliseconds()
}
