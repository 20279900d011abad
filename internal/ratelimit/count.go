package ratelimit

import "github.com/cric-talk/guards/internal/policy"

// CountIn decides r at now, in Unix milliseconds, as Check does, and counts it in
// s if it is admitted. S is the true state of r's item and must not be nil. R
// must be new, and its Count at most the policy's Most.
//
// CountIn sends no requests and needs no id, so it takes less than a microsecond.
// It is for a program that holds all items itself, such as a replay of recorded
// traffic.
func (r *Request) CountIn(now int64, s policy.State) Decision {
	n, u := r.fits(Write{Now: now}, s)
	if n == 0 {
		return r.decision(now, s, 0)
	}
	u.ApplyTo(s)
	return r.counted(now, s, n, u.ReadyAt)
}
