package outage_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// An action is one that was counted. Both times are Unix milliseconds.
type action struct {
	at    int64 // when it was counted
	place int64 // when it may run: at, or the later window that a reservoir gave
}

// most returns how many actions r allows at once.
func most(r policy.Rate) int64 {
	if r.Kind == "bucket" {
		return r.Burst
	}
	return r.Limit
}

// peak returns the most of these actions that ever counted at once, by the
// documentation of r. It shares no code with the policies. Each action counts
// for 1, and an account has one that costs more as often as it has units.
func peak(t testing.TB, r policy.Rate, actions []action) (got int64) {
	t.Helper()
	actions = slices.Clone(actions)
	slices.SortFunc(actions, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	window := r.Window.Milliseconds()
	counts := map[int64]int64{} // by the number of the window
	switch r.Kind {
	case "fixed":
		for _, a := range actions {
			counts[a.at/window]++
			got = max(got, counts[a.at/window])
		}
	case "reservoir":
		for _, a := range actions {
			counts[a.place/window]++
			got = max(got, counts[a.place/window])
		}
	case "log":
		first := 0
		for i, a := range actions {
			for actions[first].at <= a.at-window {
				first++
			}
			got = max(got, int64(i-first)+1)
		}
	case "sliding":
		for _, a := range actions {
			k := a.at / window
			counts[k]++
			got = max(got, counts[k]+counts[k-1]*(window-a.at%window)/window)
		}
	case "bucket":
		got = drained(window/r.Limit, actions)
	default:
		t.Fatalf("this test has no promise of the kind %s", r.Kind)
	}
	return got
}

// drained returns the most actions that a bucket held, if one leaves it every
// interval. Up to any action, that is the number of actions since some earlier
// one, less those that have left since then.
func drained(interval int64, actions []action) (got int64) {
	for last := range actions {
		for first := last; first >= 0; first-- {
			left := (actions[last].at - actions[first].at) / interval
			got = max(got, int64(last-first)+1-left)
		}
	}
	return got
}

// texts returns the policies of these tests: the main example of each kind, and
// the special cases of some. A new kind takes part by itself.
func texts() []string {
	all := []string{
		"bucket 1/5s keep 1h", "minute: 10/1m, day: 200/1d", "log: log 6/5m, pace: bucket 10/1m", "jobs: reservoir 2/10s ahead 1m, day: 200/1d",
	}
	for _, k := range policy.Kinds() {
		all = append(all, k.Examples[0])
	}
	return all
}

// An account holds what each user's actions were, and who counted them.
type account map[string][]action

// add counts an action of user, as so many units. ReadyAt is the place it got; 0: it runs
// at once.
func (a account) add(units int64, user string, at time.Time, readyAt int64) {
	now := at.UnixMilli()
	for range units {
		a[user] = append(a[user], action{now, max(now, readyAt)})
	}
}
