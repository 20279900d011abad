package ratelimit

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// moment is when the rows of these tables happen: the start of a minute.
var moment = time.UnixMilli(1_700_000_040_000)

// holding returns an item that has counted the requests with these ids, one
// action each, for a policy of 3 a minute.
func holding(ids ...string) Item {
	var item Item
	for _, id := range ids {
		item, _ = item.Write(asking(id, 1).planned(moment))
	}
	return item
}

func asking(id string, n int64) *Request {
	return &Request{UserID: "u", Activity: "act", Policy: policy.Must("3/1m"), Count: n, ID: id}
}

// planned returns the write that counts r in an item that has room.
func (r *Request) planned(at time.Time) Write {
	q := r.ask(Check, at.UnixMilli())
	w := q.write
	w.Update, _ = q.in(nil).take(r.Count)
	return w
}

func TestKnownRefuses(t *testing.T) {
	full := holding("a", "b", "c")
	for _, tt := range []struct {
		name  string
		known Known
		id    string
		count int64
		want  bool
	}{
		{"a state that was never brought", Known{Seen: full}, "x", 1, false},
		{"a full state, at once", Known{Seen: full, Asked: moment}, "x", 1, true},
		{"a full state, a second old", Known{Seen: full, Asked: moment.Add(-time.Second)}, "x", 1, true},
		{"a full state, older", Known{Seen: full, Asked: moment.Add(-time.Second - 1)}, "x", 1, false},
		{"a full state from a clock that has stepped back since", Known{Seen: full, Asked: moment.Add(1)}, "x", 1, false},
		{"a full state and a repeat of what it counts", Known{Seen: full, Asked: moment}, "b", 1, false},
		{"a state with room", Known{Seen: holding("a"), Asked: moment}, "x", 2, false},
		{"a state with too little room", Known{Seen: holding("a"), Asked: moment}, "x", 3, true},
		{"a full state, invalidated since", Known{Seen: full, Asked: moment.Add(-2), Invalidated: moment.Add(-1)}, "x", 1, false},
		{"a full state, invalidated at the same time", Known{Seen: full, Asked: moment, Invalidated: moment}, "x", 1, false},
		{"a full state, invalidated before", Known{Seen: full, Asked: moment, Invalidated: moment.Add(-1)}, "x", 1, true},
		{"what was admitted alone does not refuse", Known{Seen: holding("a"), Fallback: full, Asked: moment}, "x", 1, false},
	} {
		d, got := tt.known.refuse(new(asking(tt.id, tt.count).ask(Check, moment.UnixMilli())), moment)
		if got != tt.want || got && (d.Allowed || d.Reason != Limited || d.Wait != time.Minute) {
			t.Errorf("%s refuses: %v with %+v, want %v", tt.name, got, d, tt.want)
		}
	}
}

func TestKnownLearns(t *testing.T) {
	before, now, after := moment.Add(-time.Minute), moment, moment.Add(time.Minute)
	for _, tt := range []struct {
		name  string
		had   Known
		asked time.Time
		want  int64 // counted in Seen afterwards; the answer has 2, what was known has 1
	}{
		{"the first answer", Known{}, before, 2},
		{"a later answer", Known{Seen: holding("a"), Asked: before}, now, 2},
		{"an answer of the same moment", Known{Seen: holding("a"), Asked: now}, now, 2},
		{"an answer that was overtaken", Known{Seen: holding("a"), Asked: now}, before, 1},
		{"an answer after the clock stepped back", Known{Seen: holding("a"), Asked: after}, before, 2},
	} {
		tt.had.Fallback, tt.had.Invalidated = holding("x"), before
		got := tt.had.learn(holding("a", "b"), tt.asked, now)
		if used := got.Seen.State.Get("activityCount"); used != tt.want || got.Fallback.State.Get("activityCount") != 1 {
			t.Errorf("%s: %d seen, %v alone, want %d seen, 1 alone", tt.name, used, got.Fallback.State, tt.want)
		}
		if got.Invalidated != before {
			t.Errorf("%s: invalidated at %v, want %v", tt.name, got.Invalidated, before)
		}
	}
}

// A check that the memory refuses alone leaves it as it is. Seen is then still what the store
// showed, and Fallback has no place that nobody was given.
func TestARefusalAloneChangesNothing(t *testing.T) {
	r := asking("x", 1)
	r.Policy = policy.Must("reservoir 1/10s ahead 20s")
	given := policy.State{{Name: "t", Value: moment.Add(20*time.Second).UnixMilli()*1_000_000 + 1}} // each place
	for _, k := range []Known{{Seen: Item{State: given}, Asked: moment}, {Fallback: Item{State: given}, Asked: moment}} {
		q := r.ask(Check, moment.UnixMilli())
		after, d := k.admit(&q)
		if d.Allowed || d.ReadyAt != 0 {
			t.Fatalf("%+v, want a refusal", d)
		}
		if !reflect.DeepEqual(after, k) {
			t.Errorf("%+v is known after the refusal, want %+v", after, k)
		}
	}
}

func TestKnownAdmits(t *testing.T) {
	for _, tt := range []struct {
		name        string
		seen, alone Item
		id          string
		count       int64
		partial     bool
		want        int64 // granted
		seenAfter   int64
		aloneAfter  int64
	}{
		{"nothing known", Item{}, Item{}, "x", 2, false, 2, 2, 2},
		{"room in both", holding("a"), holding("b"), "x", 2, false, 2, 3, 3},
		{"no room in what was seen", holding("a", "b", "c"), Item{}, "x", 1, false, 0, 3, 0},
		{"no room in what was admitted alone", Item{}, holding("a", "b", "c"), "x", 1, false, 0, 0, 3},
		{"too little room for all", holding("a", "b"), Item{}, "x", 2, false, 0, 2, 0},
		{"a part fits in what was seen", holding("a", "b"), Item{}, "x", 3, true, 1, 3, 1},
		{"a part fits in what was admitted alone", holding("a"), holding("b", "c"), "x", 3, true, 1, 2, 3},
		{"a repeat of what was seen", holding("a", "b", "c"), Item{}, "a", 1, false, 1, 3, 0},
		{"a repeat of what was admitted alone", Item{}, holding("a", "b", "c"), "a", 1, false, 1, 0, 3},
	} {
		k := Known{Seen: tt.seen, Fallback: tt.alone}
		r := asking(tt.id, tt.count)
		r.Partial = tt.partial
		q := r.ask(Check, moment.UnixMilli())
		after, d := k.admit(&q)
		if d.Reason != Unavailable || d.Granted != tt.want || d.Allowed != (tt.want > 0) {
			t.Errorf("%s: %+v, want %d granted from memory", tt.name, d, tt.want)
		}
		if s, a := after.Seen.State.Get("activityCount"), after.Fallback.State.Get("activityCount"); s != tt.seenAfter || a != tt.aloneAfter {
			t.Errorf("%s: %d seen and %d alone afterwards, want %d and %d", tt.name, s, a, tt.seenAfter, tt.aloneAfter)
		}
		if k.Seen.State.Get("activityCount") != tt.seen.State.Get("activityCount") {
			t.Errorf("%s: admit changed what it was given", tt.name)
		}
		again, d := after.admit(&q)
		if tt.want > 0 && (!d.Allowed || again.Fallback.State.Get("activityCount") != tt.aloneAfter) {
			t.Errorf("%s, repeated: %+v and %v, want it counted once", tt.name, d, again.Fallback.State)
		}
	}
}

// A refusal has the wait of the state that refuses longest.
func TestKnownRefusalWaitsForBoth(t *testing.T) {
	r := Request{UserID: "u", Activity: "act", Policy: policy.Must("log 1/1h"), Count: 1, ID: "x"}
	at := func(t time.Time) Item {
		item, _ := Item{}.Write(r.planned(t))
		return item
	}
	early, late := at(moment.Add(-40*time.Minute)), at(moment.Add(-10*time.Minute))
	for _, k := range []Known{{Seen: early, Fallback: late}, {Seen: late, Fallback: early}} {
		other := r
		other.ID = "y"
		_, d := k.admit(new(other.ask(Check, moment.UnixMilli())))
		if d.Allowed || d.Wait != 50*time.Minute {
			t.Errorf("%+v, want it refused for 50 minutes", d)
		}
	}
}

// Memory drops the keys that were not used for longest.
func TestMemoryDropsTheLeastRecentlyUsed(t *testing.T) {
	key := func(user string) Key { return Key{UserID: user, Activity: "act"} }
	keep := func(k Known) Known { return k.learn(holding("a"), moment, moment) }
	one := NewMemory(1 << 20)
	one.Change(key("a"), keep)
	m := NewMemory(2*one.bytes + one.bytes/2) // room for two
	for _, user := range []string{"a", "b"} {
		m.Change(key(user), keep)
	}
	m.Recall(key("a"))
	m.Change(key("c"), keep)
	for user, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if got := !m.Recall(key(user)).Asked.IsZero(); got != want {
			t.Errorf("%s is known: %v, want %v", user, got, want)
		}
	}
	if m.bytes > m.most || len(m.byKey) != m.recent.Len() || len(m.byKey) != 2 {
		t.Errorf("%d bytes of %d, %d keys, %d in the list", m.bytes, m.most, len(m.byKey), m.recent.Len())
	}
	small := NewMemory(1) // one key always stays
	small.Change(key("a"), keep)
	if small.Recall(key("a")).Asked.IsZero() {
		t.Error("a memory that is too small forgets the key in use")
	}
}

// However many keys are throttled, the breaker remembers a bounded number.
func TestTheBreakerRemembersABoundedNumberOfKeys(t *testing.T) {
	var b breaker
	for i := range maxOpen + 100 {
		b.openKey(Key{UserID: strconv.Itoa(i)}, circuit{new(StoreError), moment})
	}
	if len(b.keys) != maxOpen {
		t.Errorf("%d keys are remembered, want %d", len(b.keys), maxOpen)
	}
}
