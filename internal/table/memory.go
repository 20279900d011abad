package table

import (
	"context"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// Memory sweeps and erases in the embedded store. Its methods finish at once,
// so they ignore o.Until and o.Progress, and never fail.
type Memory struct{ Store *memstore.Store }

// Sweep deletes each item that has expired.
func (m Memory) Sweep(_ context.Context, o Sweep) (Swept, error) {
	return m.sweep(o, func(_ ratelimit.Key, expires int64) (read, stale bool) { return true, expires < o.Now }), nil
}

// Erase deletes every item of a user, expired or not. It ignores o.Now.
func (m Memory) Erase(_ context.Context, user string, o Sweep) (Swept, error) {
	return m.sweep(o, func(k ratelimit.Key, _ int64) (read, stale bool) { return k.UserID == user, true }), nil
}

// sweep calls look for each item. It counts the items for which look returns
// read, and deletes those for which look also returns stale.
func (m Memory) sweep(o Sweep, look func(k ratelimit.Key, expires int64) (read, stale bool)) Swept {
	users := make(map[string]bool)
	swept := Swept{Finished: true}
	m.Store.DeleteFunc(func(k ratelimit.Key, expires int64) bool {
		read, stale := look(k, expires)
		if read {
			swept.Scanned++
			users[k.UserID] = true
		}
		if !read || !stale {
			return false
		}
		swept.Stale++
		return !o.DryRun
	})
	if !o.DryRun {
		swept.Deleted = swept.Stale
	}
	swept.Users = int64(len(users))
	return swept
}
