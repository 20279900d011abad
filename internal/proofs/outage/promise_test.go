package outage_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
)

// An action is one that was counted. Its other times are Unix milliseconds.
type action struct {
	told  int64 // when it was admitted, in Unix nanoseconds: a millisecond can have two of one caller
	at    int64 // when it came; it counts from then on
	place int64 // when it may run: at, or the later window that a reservoir gave
}

// most returns how many actions r allows at once.
func most(r policy.Rate) int64 {
	if r.Kind == "bucket" {
		return r.Burst
	}
	return r.Limit
}

// peak returns the most of these actions that ever counted at once, by the oracle's model
// of r. Each action counts for 1, and an account has one that costs more as often as it has
// units. A reservoir counts each action in the window of its place. An action that waited
// for the table is admitted later than others that came after it. By then, older ones may
// count no more.
func peak(t testing.TB, r policy.Rate, actions []action) (got int64) {
	t.Helper()
	if r.Kind == "reservoir" {
		counts := map[int64]int64{}
		for _, a := range actions {
			k := a.place / r.Window.Milliseconds()
			counts[k]++
			got = max(got, counts[k])
		}
		return got
	}
	m, err := oracle.New(r)
	if err != nil {
		t.Fatal(err)
	}
	actions = slices.Clone(actions)
	slices.SortFunc(actions, func(a, b action) int { return cmp.Or(cmp.Compare(a.told, b.told), cmp.Compare(b.at, a.at)) })
	for _, a := range actions {
		m.Count(a.at, 1, r)
		got = max(got, m.Used(a.at, r, false))
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
		a[user] = append(a[user], action{time.Now().UnixNano(), now, max(now, readyAt)})
	}
}
