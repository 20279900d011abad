package ratelimit_test

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
)

// 10,000 users act up to their limit in an outage. The memory takes at most
// 64 MB, by its own account and by the runtime's.
func TestMemoryIsBounded(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		before := testkit.HeapInUse()
		l := &Limiter{Store: failing{}, Timeout: time.Second, Memory: NewMemory(DefaultMemory), Now: newClock().now}
		p := s.policy()
		fill(t, l, p)
		window, _ := p.Item(start.UnixMilli())
		full := l.Memory.Recall(Key{UserID: "u", Activity: "act", Window: window})
		for user := range repeats(10_000) {
			k := Key{UserID: fmt.Sprintf("%036d", user), Activity: "act", Window: window}
			l.Memory.Change(k, func(Known) Known { return Known{Seen: own(full.Seen), Fallback: own(full.Fallback)} })
		}
		grown := testkit.HeapInUse() - before
		counted := int64(l.Memory.Bytes())
		t.Logf("%.1f MB in the heap, %.1f MB by its own account", float64(grown)/mib, float64(counted)/mib)
		if counted > DefaultMemory || grown > DefaultMemory {
			t.Errorf("the users take %d bytes, %d by its own account, want at most %d", grown, counted, DefaultMemory)
		}
		if grown > counted+mib || grown < counted/2 {
			t.Errorf("the users take %d bytes, and the memory's account says %d", grown, counted)
		}
		runtime.KeepAlive(l)
	})
}

// own returns a copy of i that shares no memory with it.
func own(i Item) Item {
	i.State, i.IDs = slices.Clone(i.State), slices.Clone(i.IDs)
	for n, a := range i.State {
		i.State[n].Name = AttributeName([]byte(a.Name))
	}
	for n, set := range i.IDs {
		i.IDs[n].Elements = slices.Clone(set.Elements)
	}
	return i
}

// fill has one user act alone until the limit, one action after the other.
func fill(t testing.TB, l *Limiter, p policy.Policy) {
	t.Helper()
	for i := range remaining(p) {
		if d := mustCheck(t, l, request(p, strconv.FormatInt(i, 10), 1)); !d.Allowed {
			t.Fatalf("action %d: %s, want it allowed", i, inWords(d))
		}
	}
}
