package ratelimit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A ledger notes what the store counted, and holds the limiters to it. It keeps
// each action on its own, and knows nothing of how a policy keeps its state. Of
// several limits it follows the first.
type ledger struct {
	*simulation
	entries []*entry
	back    map[string]bool // the requests that were given back, with their receipts
	alone   []entry         // what instances admitted alone
	latest  int64           // the latest time at which anything was counted
}

// An entry is what was counted for a request.
type entry struct {
	id     string
	who    *instance // of what was admitted alone
	window int64     // of the item
	n      int64
	at     int64 // Unix milliseconds, by the clock that counted it
	place  int64 // reservoir: when it may run
	freed  int64 // actions that came before this one and were given back after it
}

func (e *entry) receipt() string { return fmt.Sprint(e.id, " ", e.at) }

// applied notes an update that the store performed.
func (l *ledger) applied(id string, receipt int64, w Write, before, after policy.State) {
	if receipt != 0 {
		l.gaveBack(id, receipt, w, before, after)
		return
	}
	l.event("the store counts %s as of %d", id, w.Now)
	if old := l.counted(id, w.Key.Window); old != nil {
		l.fail("%s is counted twice", id)
	}
	e := &entry{id: id, window: w.Key.Window, n: 1, at: w.Now, place: w.Update.ReadyAt}
	if !l.policy.Queues() {
		was, is := l.policy.Read(w.Now, 0, before), l.policy.Read(w.Now, 0, after)
		e.n, e.at = used0(is)-used0(was), is.At
		for i := range is.Each {
			if n := is.Each[i].Used - was.Each[i].Used; n != e.n {
				l.fail("%s counts %d in the first limit and %d in the limit %s", id, e.n, n, is.Each[i].Name)
			}
		}
	}
	if l.policy.Rates()[0].Kind == "log" {
		e.at = slotTime(w, e.at)
	}
	l.entries = append(l.entries, e)
	l.latest = max(l.latest, e.at)
	l.withinLimit(l.entries, e, l.latest)
}

// slotTime returns the time that w keeps in the slots of a log. It can differ
// from the receipt at for an update that arrives late: a clock that is ahead may
// have begun something since it was planned.
func slotTime(w Write, at int64) int64 {
	const epoch = 1_577_836_800_000
	for _, act := range w.Update.Acts {
		if slot := strings.TrimPrefix(act.Attr, "a_"); len(slot) == 2 && act.Verb == policy.Set {
			return act.Value + epoch
		}
	}
	return at
}

func used0(r policy.Reading) int64 {
	if len(r.Each) > 0 {
		return r.Each[0].Used
	}
	return r.Used
}

// gaveBack notes an update of a release. Of several limits, the first may have
// had nothing to give back.
func (l *ledger) gaveBack(id string, receipt int64, w Write, before, after policy.State) {
	changed := false
	prefix := ""
	if name := l.policy.Rates()[0].Name; name != "" {
		prefix = name + "_"
	}
	for attr := range w.Update.Attributes {
		changed = changed || strings.HasPrefix(attr, prefix) && before[attr] != after[attr]
	}
	l.event("the store gives back %s (the first limit: %v)", id, changed)
	e := l.counted(id, w.Key.Window)
	if e == nil || e.at != receipt {
		l.fail("%s of %d is given back twice, or was never counted", id, receipt)
	}
	l.back[e.receipt()] = true
	if changed {
		for _, later := range l.entries[slices.Index(l.entries, e)+1:] {
			later.freed += e.n
		}
		l.entries = slices.DeleteFunc(l.entries, func(other *entry) bool { return other == e })
	} else {
		e.id += ", released too late"
	}
}

func (l *ledger) deleted(window int64) {
	l.event("the store deletes the item")
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool { return e.window == window })
}

func (l *ledger) counted(id string, window int64) *entry {
	for _, e := range l.entries {
		if e.id == id && e.window == window {
			return e
		}
	}
	return nil
}

// told compares the answer to a check with what is counted at that moment.
func (l *ledger) told(in *instance, a *asked, d Decision, now int64) {
	var n int64
	e := l.counted(a.ID, a.window)
	if e != nil {
		n = e.n
	}
	switch {
	case d.Reason == OK && n != d.Granted,
		d.Reason == Delayed && (n != 1 || d.ReadyAt != e.place),
		d.Reason == Duplicate && n == 0,
		d.Reason == Limited && d.Requests > 0 && n != 0:
		l.fail("%s is told %s, granted %d, and the store counts %d", a.ID, inWords(d), d.Granted, n)
	case d.Reason == OK && d.At != 0 && d.At != e.at:
		l.fail("%s has the receipt %d, and is counted at %d", a.ID, d.At, e.at)
	case d.Reason == Unavailable && counted(d) && a.Alone:
		one := entry{id: a.ID, who: in, n: max(1, d.Granted), at: now, place: max(d.ReadyAt, now), window: a.window}
		l.alone = append(l.alone, one)
		mine := []*entry{}
		for i := range l.alone {
			if l.alone[i].who == in {
				mine = append(mine, &l.alone[i])
				now = max(now, l.alone[i].at)
			}
		}
		l.withinLimit(mine, &one, now)
	}
}

// released requires that a release in time has given back. An attempt that
// arrives only after the release is counted and stays.
func (l *ledger) released(in *instance, a *asked) {
	e := l.counted(a.ID, a.window)
	if e == nil || e.at != a.At || l.back[e.receipt()] {
		return
	}
	rate := l.policy.Rates()[0]
	window := rate.Window.Milliseconds()
	now := max(in.limiter.Clock().UnixMilli(), a.At)
	age := now - a.At
	switch {
	case age > 14_000, age > window-3_000 && rate.Kind == "log":
	case rate.Kind == "fixed" && (now+2000)/window != a.At/window: // over, for the clock that is most ahead
	case rate.Kind == "sliding" && a.At/window < now/window-1:
	case rate.Kind == "bucket":
		item, _ := l.store.Read(l.t.Context(), Key{UserID: "u", Activity: "act"})
		since, tat := item.State["since"], item.State["tat"]
		if since <= a.At && tat >= since+a.Count*item.State["every"] {
			l.fail("%s is released after %d ms, and nothing was given back: %v", a.ID, age, item.State)
		}
	default:
		l.fail("%s is released after %d ms, and nothing was given back", a.ID, age)
	}
}

// withinLimit requires that the entries up to and including e are within the
// first limit, by its documentation. A log drops what has expired by the clock
// that is most ahead. A bucket that is given back an action also keeps what came
// back by itself since then.
func (l *ledger) withinLimit(entries []*entry, e *entry, latest int64) {
	rate := l.policy.Rates()[0]
	window := rate.Window.Milliseconds()
	sum := func(which func(*entry) bool) (n int64) {
		for _, other := range entries {
			if which(other) {
				n += other.n
			}
		}
		return n
	}
	var got int64
	limit := rate.Limit
	switch rate.Kind {
	case "fixed":
		got = sum(func(o *entry) bool { return o.at/window == e.at/window })
	case "log":
		got = sum(func(o *entry) bool { return o.at > latest-window })
	case "sliding":
		k := e.at / window
		previous := sum(func(o *entry) bool { return o.at/window == k-1 })
		got = sum(func(o *entry) bool { return o.at/window == k }) + previous*(window-e.at%window)/window
	case "reservoir":
		got = sum(func(o *entry) bool { return o.place/window == e.place/window })
	case "bucket":
		interval := window / rate.Limit
		latest = 0
		for _, first := range slices.Backward(entries) {
			latest, got = max(latest, first.at), got+first.n
			if most := rate.Burst + first.freed + (latest-first.at+2000)/interval; got > most {
				l.fail("%s is one of %d actions in %d ms, want at most %d", e.id, got, latest-first.at, most)
			}
		}
		return
	default:
		l.fail("this ledger has no promise of the kind %s", rate.Kind)
	}
	if got > limit {
		l.fail("%s makes it %d actions, want at most %d", e.id, got, limit)
	}
}

// Requests get lost, arrive late and come from different clocks. Still, each one
// counts exactly what its caller is told, and a release gives it back once. The
// limit holds in every window.
func TestSimulation(t *testing.T) {
	for _, text := range []string{
		"5/10s", "101/10s", "log 5/10s", "sliding 5/10s", "bucket 5/10s", "bucket 4/2s burst 3", "reservoir 2/10s ahead 1m",
		"a: 5/10s, b: 20/1m", "a: 5/10s, b: bucket 5/10s burst 7", "a: log 5/10s, b: bucket 5/10s burst 7",
		"a: sliding 5/10s, b: log 9/20s", "a: log 5/10s, b: sliding 9/20s", "a: log 5/10s, b: 9/20s", "a: reservoir 2/10s ahead 1m, b: 30/1m",
	} {
		t.Run(text, func(t *testing.T) {
			for seed := range uint64(20) {
				s := simulate(t, text, seed, 400)
				if t.Failed() {
					return
				}
				if len(s.asked) < 100 {
					t.Errorf("seed %d: only %d checks", seed, len(s.asked))
				}
			}
		})
	}
}
