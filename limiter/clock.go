package limiter

import "time"

// Clock returns the time by which the limiter decides.
func (l *Limiter) Clock() time.Time {
	for _, h := range l.handlers { // all have the same clock
		return h.Limiter.Clock()
	}
	return time.Now()
}
