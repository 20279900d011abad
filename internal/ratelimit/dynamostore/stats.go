package dynamostore

import (
	"context"
	"strings"
	"sync"
)

// Parts is how many parts a whole table is looked through in, of about the same
// size where users are many. A sweep tells its progress after each.
const Parts = segments

// Stats are figures of a whole table.
type Stats struct {
	Users      int64            // of whom anything is kept
	Items      int64            // kept of them
	Stale      int64            // of the items, how many had expired
	Activities map[string]int64 // users of each activity
}

// Stats looks through the whole table. Its memory does not grow with the table.
// progress is told of the figures so far, and of how many parts they are, after
// each page: one call at a time, which must not keep Activities.
func (s *Store) Stats(ctx context.Context, now int64, progress func(soFar Stats, parts int)) (Stats, error) {
	var mu sync.Mutex
	total := Stats{Activities: make(map[string]int64)}
	parts := 0
	err := s.eachSegment(ctx, func(ctx context.Context, segment int32) error {
		err := s.statsOfSegment(ctx, segment, now, func(page Stats) {
			mu.Lock()
			defer mu.Unlock()
			total.add(page)
			progress(total, parts)
		})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		parts++
		progress(total, parts)
		return nil
	})
	return total, err
}

func (s *Stats) add(page Stats) {
	s.Users += page.Users
	s.Items += page.Items
	s.Stale += page.Stale
	for activity, users := range page.Activities {
		s.Activities[activity] += users
	}
}

// statsOfSegment tells the figures of each page of a segment. A user is of the
// page where the first item is.
func (s *Store) statsOfSegment(ctx context.Context, segment int32, now int64, tell func(Stats)) error {
	var users userCount
	counted := make(map[string]bool) // the activities of the user at hand
	never := func() bool { return false }
	_, err := s.scan(ctx, segment, []string{userID, activityWindow, expiresAt}, never, func(items []attributes) (bool, error) {
		page := Stats{Users: -users.n, Activities: make(map[string]int64)}
		for _, item := range items {
			if strings.HasPrefix(textOf(item[userID]), " ") {
				continue
			}
			if users.add(item) {
				clear(counted)
			}
			page.Items++
			if expired(item, now) {
				page.Stale++
			}
			if name, _, _ := strings.Cut(textOf(item[activityWindow]), "#"); !counted[name] {
				counted[name] = true
				page.Activities[name]++
			}
		}
		page.Users += users.n
		tell(page)
		return true, nil
	})
	return err
}
