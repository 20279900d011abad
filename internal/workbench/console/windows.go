package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/workbench/words"
)

// maxWindows is how many users' windows the page shows.
const maxWindows = 40

// windows are the counts that the page shows, the newest first. A window keeps
// its place, so that the page stays calm.
type windows struct {
	all     []*window
	events  int64 // number of events so far
	version int64 // grows with each change
}

// A window is what is known of the count of one activity, of a user or a subject. Times are Unix
// milliseconds of the guards' clock.
type window struct {
	key
	subject  string // the subject's name; empty: the window is a user's
	group    string // the group of the activity; empty: none
	function string
	asked    guards.Request  // the last one
	bars     []barView       // never nil
	passesAt int64           // when the refused request can pass; 0: none was refused
	place    int64           // the place that a delayed request was given; 0: none
	by       string          // the subject that refused it, such as room=r42; empty: the user's own limit
	again    *guards.Request // asks once more for what was refused; nil: nothing was
	unknown  string          // why the figures may be old; empty: they are not
	last     int64           // the number of its last event
	read     int64           // when the figures came
	stale    bool            // another activity of the group has changed the item since
	slots    []held          // of a log, the oldest first
	lease    string          // what the guard holds of a prepaid limit, in words; empty: nothing
}

// A held slot is one that the console has seen in an answer.
type held struct {
	id           string // of the check
	until, count int64
}

// add brings the figures of one part of an answer. The figures of the other
// activities of the group are old then.
func (w *windows) add(c call, p part, group string, now int64) {
	k, op := p.key, c.request.Op
	for _, other := range w.all {
		if group != "" && other.group == group && other.user == p.user && other.key != k && op != guards.Status {
			other.stale = true
			if op == guards.Reset {
				other.slots = nil
				other.passed()
			}
		}
	}
	if !c.counts() {
		if known := w.find(k); known != nil && op == guards.Check && c.answer.Allowed {
			known.passed() // a place that was presented on time has no figures
			w.version++
		}
		return
	}
	known := w.find(k)
	if known == nil {
		known = &window{key: k, subject: p.subject, group: group, bars: []barView{}}
		w.all = append([]*window{known}, w.all...)
		if len(w.all) > maxWindows {
			oldest := slices.MinFunc(w.all[1:], func(a, b *window) int { return cmp.Compare(a.last, b.last) })
			w.all = slices.DeleteFunc(w.all, func(other *window) bool { return other == oldest })
		}
	}
	w.events++
	known.function, known.asked, known.last = c.function, c.request, w.events
	known.stale = !known.set(c, now) // what is stale is read soon
	w.version++
	if p.subject != "" { // the window of the user tells what can be asked again
		return
	}
	known.hold(c)
	switch {
	case op == guards.Check && !c.answer.Allowed:
		known.passesAt, known.place = now+c.answer.WaitTime, c.answer.ReadyAt
		again := c.request // a new one; a delayed request presents its place
		again.RequestID, again.At, again.Op, again.ReadyAt = "", 0, "", c.answer.ReadyAt
		known.again, known.by = &again, c.by()
	case op != guards.Status && op != guards.Renew:
		known.passed()
	}
}

// hold follows the slots of a log. A release gives back as many actions as it names, a
// renewal moves them, and one that is told "expired" has none.
func (w *window) hold(c call) {
	r, d := c.request, c.answer
	id := r.RequestID
	if r.Op == guards.Check {
		id = d.RequestID
	}
	i := slices.IndexFunc(w.slots, func(s held) bool { return s.id == id })
	switch {
	case r.Op == guards.Reset:
		w.slots = nil
	case d.HeldUntil > 0:
		if i >= 0 {
			w.slots = slices.Delete(w.slots, i, i+1)
		}
		w.slots = last(append(w.slots, held{id, d.HeldUntil, d.Granted}), maxShown)
	case i >= 0 && r.Op == guards.Renew:
		w.slots = slices.Delete(w.slots, i, i+1)
	case i >= 0 && r.Op == guards.Release && c.gaveBack():
		if w.slots[i].count -= r.Count; w.slots[i].count <= 0 {
			w.slots = slices.Delete(w.slots, i, i+1)
		}
	}
}

// held returns in words until when the slots that count at now are held.
func (w *window) held(now int64) string {
	const most = 3
	var times []string
	for _, s := range w.slots {
		if s.until > now {
			times = append(times, stamp(s.until))
		}
	}
	if len(times) == 0 {
		return ""
	}
	if more := len(times) - most; more > 0 {
		times = append(times[:most], fmt.Sprintf("and %d more", more))
	}
	return "Held until " + strings.Join(times, ", ") + "."
}

// passed forgets what was refused.
func (w *window) passed() { w.passesAt, w.place, w.again, w.by = 0, 0, nil, "" }

// set brings the figures of the answer to a call. It returns false if the answer has none
// of the window's part.
func (w *window) set(c call, now int64) bool {
	own := partOf(c.answer, w.asked, w.subject)
	if len(own) == 0 {
		return false
	}
	w.bars, w.unknown, w.read = barsOf(own), "", now
	if c.answer.Reason == guards.Unavailable {
		w.unknown = "The table does not answer. These figures are from the guard's memory."
	}
	return true
}

// find returns the window of a user and an activity, or nil.
func (w *windows) find(k key) *window {
	for _, known := range w.all {
		if known.key == k {
			return known
		}
	}
	return nil
}

// due reports whether the figures may have changed by now, although nobody
// acted: something counts or is held, and a second has passed or a limit resets. Or
// another activity of the group has acted.
func (w *window) due(now int64) bool {
	const pause = 1000
	return w.stale || w.lease != "" && now >= w.read+pause || slices.ContainsFunc(w.bars, func(b barView) bool {
		return b.Used > 0 && (now >= w.read+pause || now < w.read || now >= b.ResetAt && w.read < b.ResetAt)
	})
}

// read asks the guards for the figures of all windows that are due, or of all
// windows. These events are not recorded. It returns at once if another call is
// still reading.
func (c *Console) read(ctx context.Context, all bool) {
	if !c.reading.TryLock() {
		return
	}
	defer c.reading.Unlock()
	now := c.Clock.Now().UnixMilli()
	var due []window
	c.mu.Lock()
	for _, w := range c.windows.all {
		if all || w.due(now) {
			due = append(due, *w)
		}
	}
	c.mu.Unlock()
	for _, w := range due {
		c.readOne(ctx, w)
	}
}

// lease returns in words what the guard's instance holds of a prepaid limit, and can hand out
// without asking the table.
func (c *Console) lease(w *window) string {
	left, until := c.held[w.function](w.user, w.activity)
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("This instance holds a lease: %s until %s.", words.Several(left, "more action"), stamp(until))
}

// patience is how long the console waits for one window's figures.
const patience = 2 * time.Second

// readOne asks a guard for the figures of one window. Before is a copy of the
// window from before the request.
func (c *Console) readOne(ctx context.Context, before window) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := c.Clock.Now().UnixMilli()
	asked := before.asked
	if before.again != nil { // the countdown belongs to the refused request
		asked = *before.again
	}
	event := eventOf(statusOf(asked))
	reply, err := c.guards[before.function].Invoke(ctx, event)
	made := newCall(event, reply, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows.find(before.key)
	if w == nil || w.last != before.last { // a newer answer came in the meantime
		return
	}
	w.read, w.stale = at, false
	if shown := made.counts() && w.set(made, at); !shown && made.err != "" {
		w.unknown = "These figures may be old. " + made.err
	}
	if w.again != nil && w.place == 0 && made.counts() {
		w.passesAt = at + made.answer.WaitTime
	}
	w.lease = c.lease(w)
	if w.unknown != before.unknown || w.lease != before.lease || w.passesAt != before.passesAt || !slices.Equal(w.bars, before.bars) { // the page shows the difference
		c.windows.version++
		c.notify()
	}
}

// A part is what one item counts of a call: the user's item, or the item of a subject
// such as a room.
type part struct {
	key
	subject string // its name; empty: the user
}

// partsOf returns the parts of a request, the user first.
func partsOf(r guards.Request) []part {
	all := []part{{key{r.UserID, r.Activity}, ""}}
	for _, name := range slices.Sorted(maps.Keys(r.Subjects)) {
		all = append(all, part{key{limits.SubjectID(name, r.Subjects[name]), r.Activity}, name})
	}
	return all
}

// subjectOf returns the subject that a limit of an answer is about; empty: the user. A
// limit of a subject is named room, or room.minute if the subject has several.
func subjectOf(r guards.Request, limit string) string {
	name, _, _ := strings.Cut(limit, ".")
	if _, ok := r.Subjects[name]; ok {
		return name
	}
	return ""
}

// by names the subject that refused a call as the page shows it, such as room=r42. It is empty
// if nothing did, or the user's own limit.
func (c *call) by() string {
	name := subjectOf(c.request, c.answer.LimitedBy)
	if c.answer.Allowed || name == "" {
		return ""
	}
	return name + "=" + c.request.Subjects[name]
}

// partOf returns the figures that the answer to r has of one part. There are none if
// the answer has none of it: a refusal from memory has only the figures of the limit
// that refused.
func partOf(d guards.Decision, r guards.Request, subject string) (own []guards.Figures) {
	if len(r.Subjects) == 0 {
		return guard.LimitsOf(d)
	}
	for _, f := range d.Limits {
		if subjectOf(r, f.Name) != subject {
			continue
		}
		if f.Name = strings.TrimPrefix(strings.TrimPrefix(f.Name, subject), "."); f.Name == r.Activity && subject == "" {
			f.Name = "" // the user's only limit
		}
		own = append(own, f)
	}
	return own
}

// usedIn returns what counts in all of these limits together.
func usedIn(all []guards.Figures) (n int64) {
	for _, f := range all {
		n += f.ActivityCount
	}
	return n
}

// gaveBack reports whether a release changed a count of its user.
func (c *call) gaveBack() bool {
	own := partOf(c.answer, c.request, "")
	return len(own) > 0 && usedIn(own) < c.before
}

// shown returns the user or the subject of a key as the page shows it: u1, or room=r42.
func (k key) shown() string {
	if name, id, ok := limits.SubjectOf(k.user); ok {
		return name + "=" + id
	}
	return k.user
}
