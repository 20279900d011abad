package guard

import "sync"

// refusalLines is how many refusals an instance logs in a second. That shows who is refused
// and what for, while a flood of refusals must not cost more than the flood itself.
const refusalLines = 10

// A sample lets the first few events of each second through and counts the others.
type sample struct {
	mu      sync.Mutex
	second  int64
	through int64
	left    int64 // not let through since the last one that was
}

// next reports whether an event gets through, and how many before it did not.
func (s *sample) next(second int64) (left int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if second != s.second {
		s.second, s.through = second, 0
	}
	if s.through == refusalLines {
		s.left++
		return 0, false
	}
	s.through++
	left, s.left = s.left, 0
	return left, true
}
