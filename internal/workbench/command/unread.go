package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// unusable returns the attributes of the wrong type that a guard needs to decide the
// activity by p.
func unusable(a limits.Activity, key string, p policy.Policy, item ratelimit.Item, now int64) []string {
	return ratelimit.Request{UserID: key, Activity: a.Name, Group: a.Group, Policy: p, Count: 1, ID: "status"}.Unusable(now, item)
}

// An unread is an item that has an attribute of the wrong type which guards need. They decide
// by it as in an outage, and its figures mean nothing.
type unread struct {
	owner
	Item       string   `json:"item"` // an activity or a group
	Attributes []string `json:"attributes"`
	Repair     string   `json:"repair"` // what helps
}

func (u unread) String() string {
	return fmt.Sprintf("an item of %s can't be read, so its figures mean nothing: %s has the wrong type; %s", u.Item, strings.Join(u.Attributes, ", "), u.Repair)
}

// unreadOf returns what is wrong with an item, and false if guards can read it.
func unreadOf(guards limits.Guards, key ratelimit.Key, item ratelimit.Item, at time.Time) (u unread, ok bool) {
	all := countedIn(guards, key.Activity)
	u = unread{owner: ownerOf(key.UserID), Item: key.Activity}
	if len(all) == 0 || all[0].Unlimited { // no guard decides by it, and its figures can't be shown
		u.Attributes = slices.Clone(item.Unread)
	}
	for _, a := range all {
		if p := a.Part(subjectOf(key.UserID)).Limit; !p.IsZero() {
			u.Attributes = append(u.Attributes, unusable(a, key.UserID, p, item, at.UnixMilli())...)
		}
	}
	if u.Attributes = slices.Compact(slices.Sorted(slices.Values(u.Attributes))); len(u.Attributes) == 0 {
		return u, false
	}
	switch whose := option(key.UserID); {
	case clears(all, key, at):
		u.Repair = "guards reset " + whose + " " + all[0].Name + " repairs it"
	case key.Window != 0: // no guard reads it any more
		u.Repair = "it expires by itself"
	default:
		u.Repair = "guards erase " + whose + " repairs it, and deletes all else of " + shown(key.UserID)
	}
	if len(all) > 0 && all[0].Group != "" {
		u.Item = groupOf(all)
	}
	return u, true
}

// clears reports whether a reset deletes the item with this key, which counts these
// activities. It deletes the current item of an activity that has a limit. Of a
// reservoir it deletes nothing, because jobs wait for the places.
func clears(counted []limits.Activity, key ratelimit.Key, at time.Time) bool {
	return len(counted) > 0 && !counted[0].Unlimited && counted[0].Has(subjectOf(key.UserID)) && !queues(counted) && keyOf(key.UserID, counted[0], at.UnixMilli()) == key
}

// unreadItems are the first of the items that were read and are unreadable.
type unreadItems []unread

const maxUnread = 100

// add adds an item and returns true, unless guards can read it.
func (all *unreadItems) add(guards limits.Guards, key ratelimit.Key, item ratelimit.Item, at time.Time) bool {
	u, ok := unreadOf(guards, key, item, at)
	if ok && len(*all) < maxUnread {
		*all = append(*all, u)
	}
	return ok
}

// each returns a func that adds the items that it is called with.
func (all *unreadItems) each(env session) func(ratelimit.Key, ratelimit.Item) {
	return func(k ratelimit.Key, item ratelimit.Item) { all.add(env.guards, k, item, env.now()) }
}

// unreadable adds a part with the items, if there are any.
func (t *textTable) unreadable(all unreadItems) {
	if len(all) > 0 {
		t.row()
		t.head("UNREADABLE", "ITEM", "ATTRIBUTES", "WHAT HELPS")
	}
	for _, u := range all {
		t.row(shown(u.key()), u.Item, strings.Join(u.Attributes, ", "), u.Repair)
	}
}
