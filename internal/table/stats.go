package table

import (
	"context"
	"strings"
	"sync"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// Stats are the figures of a whole table.
type Stats struct {
	Users      int64            // users who have items
	Items      int64            // their items
	Stale      int64            // how many of the items had expired
	Activities map[string]int64 // users of each activity
}

// Stats counts the users and items of the whole table. now is in Unix seconds.
// The memory it needs does not grow with the table. After each page it calls
// progress with the figures so far and the number of parts they cover, never
// twice at once. progress must not keep soFar.Activities.
func (d *DynamoDB) Stats(ctx context.Context, now int64, progress func(soFar Stats, parts int)) (Stats, error) {
	var mu sync.Mutex
	total := Stats{Activities: make(map[string]int64)}
	parts := 0
	err := eachSegment(ctx, func(ctx context.Context, segment int32) error {
		err := d.statsOfSegment(ctx, segment, now, func(page Stats) {
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

// statsOfSegment calls report with the figures of each page of a segment. A
// user counts in the page that has the user's first item.
func (d *DynamoDB) statsOfSegment(ctx context.Context, segment int32, now int64, report func(Stats)) error {
	var users userCount
	counted := make(map[string]bool) // activities of the current user
	never := func() bool { return false }
	_, err := d.scan(ctx, segment, never, func(items []attributes) (bool, error) {
		page := Stats{Users: -users.n, Activities: make(map[string]int64)}
		for _, item := range items {
			if ours(item) {
				continue
			}
			if users.add(item) {
				clear(counted)
			}
			page.Items++
			if expired(item, now) {
				page.Stale++
			}
			if name, _, _ := strings.Cut(dynamostore.TextOf(item[activityWindow]), "#"); !counted[name] {
				counted[name] = true
				page.Activities[name]++
			}
		}
		page.Users += users.n
		report(page)
		return true, nil
	})
	return err
}
