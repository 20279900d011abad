package dynamostore

import (
	"context"
	"strings"
	"sync"
)

// Stats are figures of a whole table.
type Stats struct {
	Users      int64            // of whom anything is kept
	Items      int64            // kept of them
	Stale      int64            // of the items, how many had expired
	Activities map[string]int64 // users of each activity
}

// Stats looks through the whole table. Its memory does not grow with the table.
// progress is told of the figures so far, one call at a time.
func (s *Store) Stats(ctx context.Context, now int64, progress func(Stats)) (Stats, error) {
	var mu sync.Mutex
	total := Stats{Activities: make(map[string]int64)}
	err := s.eachSegment(ctx, func(ctx context.Context, segment int32) error {
		found, err := s.statsOfSegment(ctx, segment, now)
		mu.Lock()
		defer mu.Unlock()
		total.Users += found.Users
		total.Items += found.Items
		total.Stale += found.Stale
		for activity, users := range found.Activities {
			total.Activities[activity] += users
		}
		progress(total)
		return err
	})
	return total, err
}

func (s *Store) statsOfSegment(ctx context.Context, segment int32, now int64) (Stats, error) {
	found := Stats{Activities: make(map[string]int64)}
	var users userCount
	counted := make(map[string]bool) // the activities of the user at hand
	never := func() bool { return false }
	_, err := s.scan(ctx, segment, []string{userID, activityWindow, expiresAt}, never, func(items []attributes) (bool, error) {
		for _, item := range items {
			if strings.HasPrefix(textOf(item[userID]), " ") {
				continue
			}
			if users.add(item) {
				clear(counted)
			}
			found.Items++
			if expired(item, now) {
				found.Stale++
			}
			if name, _, _ := strings.Cut(textOf(item[activityWindow]), "#"); !counted[name] {
				counted[name] = true
				found.Activities[name]++
			}
		}
		return true, nil
	})
	found.Users = users.n
	return found, err
}
