package ratelimit

// late reports whether the window of the place that q's id has is over, or whether the
// policy does not give that place any more. Then a repeat of q is a late job: one update
// gives its id a new place instead of the old one, and later repeats get the new place.
// An id that was counted without a place is never late.
//
// For example, with reservoir 10/10s, and seconds instead of times:
//
//	second 8   check r1     runs now; the item keeps "r1, place 0"
//	second 9   r1 again     duplicate
//	second 27  r1 again     late: the item keeps "r1, place 20" instead, and r1 runs now
//	second 28  r1 again     duplicate
//
// Places of one id only move forward. So an update that was planned before a move finds
// the id with another place, in the same set or in a later one, and changes nothing.
func (q *question) late(kept Kept) bool {
	if !q.Policy.Queues() || kept.Note <= MostReleased { // no place, but the number of a partial grant
		return false
	}
	onTime, early := q.Policy.Due(q.write.Now, kept.Note)
	return !onTime && !early
}
