package guard

import "sync"

// refusalLines is how many refusals an instance logs in one second. These lines
// show who is refused and why. More lines would make a flood of refusals
// expensive.
const refusalLines = 10

// A sample lets the first few events of each second pass and counts the others.
// The zero sample is ready to use.
type sample struct {
	mu     sync.Mutex
	second int64
	passed int64 // events that passed in this second
	held   int64 // events that did not pass since the last one that did
}

// next reports whether an event passes. If so, it returns how many events
// before it did not.
func (s *sample) next(second int64) (held int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if second != s.second {
		s.second, s.passed = second, 0
	}
	if s.passed == refusalLines {
		s.held++
		return 0, false
	}
	s.passed++
	held, s.held = s.held, 0
	return held, true
}
