// Package replay shows what a limit would have done to recorded traffic.
//
// [Replay.Compare] reads the traffic (package traffic) and decides each request as
// a guard would have decided it at the recorded time, by one limit or by several
// side by side. It returns a [Report] with the figures of each. Other functions build
// on the same decisions:
//
//   - [Replay.Group] does the same for several activities that share counts.
//   - [Replay.Timelines] decides the requests of one user once more and keeps
//     the details. Package plot draws them.
//   - [Replay.Suggest] searches for the lowest limit that leaves most users
//     alone.
//
// For example, the traffic is three requests of one user within a minute, and
// the limit is 2/1m. The report has 2 requests allowed and 1 refused.
//
// The counts are kept in memory. The memory grows with the number of users, not
// with the number of lines.
package replay

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A Replay decides the requests of one activity. It skips lines of other ones.
type Replay struct {
	Activity string
	Policy   policy.Policy     // not zero
	Subjects []Subject         // that count each request, too; for Compare
	Times    []int64           // of the user's requests, if pictures are to leave out windows without one; for Timelines
	Progress func(lines int64) // if set, called every 16,384 lines with the number of lines read so far
}

// A Subject is another one that each request of a replay counts for, such as a room. A
// line without its id is not limited by it. Lines have the ids in the order of
// [traffic.Options.Subjects].
type Subject struct {
	Name   string
	Policy policy.Policy // no reservoir
}

// progressLines is how many lines are read between two calls of Progress. Then
// the context is checked too.
const progressLines = 1 << 14

// otherNames is the most other activities that an error names.
const otherNames = 10

// Compare decides all requests of the traffic under r.Policy, and again under
// each other policy. The reports are in this order. If Compare returns an
// error, they have the figures up to there.
func (r *Replay) Compare(ctx context.Context, t *traffic.Reader, others ...policy.Policy) ([]*Report, error) {
	all := []Member{{r.Activity, r.Policy}}
	for _, p := range others {
		all = append(all, Member{r.Activity, p})
	}
	return r.decide(ctx, t, all, false)
}

// A Member is an activity of a group with its limits, which have names.
type Member struct {
	Activity string
	Policy   policy.Policy
}

// Group decides all requests of r.Activity and of the others, which count in one item of
// each user. Limits with the same name share a count, so the policies must meet: see
// [policy.CompatibleInGroup]. There is a report for each activity, in this order. Of an activity
// without a request, it has no figures.
func (r *Replay) Group(ctx context.Context, t *traffic.Reader, others ...Member) ([]*Report, error) {
	return r.decide(ctx, t, append([]Member{{r.Activity, r.Policy}}, others...), true)
}

// decide decides all requests of the members' activities. If shared is set, they count
// in the same items.
func (r *Replay) decide(ctx context.Context, t *traffic.Reader, all []Member, shared bool) ([]*Report, error) {
	s := newShards(all, shared, r.Subjects)
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Activity
	}
	skipped, err := r.eachOf(ctx, t, names, func(line traffic.Line) error {
		s.add(line)
		return nil
	})
	reports := s.end()
	for _, report := range reports {
		report.OtherActivities = skipped
		report.finish(t)
		report.Interrupted = ctx.Err() != nil
	}
	return reports, err
}

// eachOf calls do with each request of the activities. It returns how many lines of
// other activities it skipped. No request at all is an error.
func (r *Replay) eachOf(ctx context.Context, t *traffic.Reader, activities []string, do func(traffic.Line) error) (skipped int64, err error) {
	names := make(map[string]bool) // of other activities
	found := false
	err = r.each(ctx, t, func(line traffic.Line) error {
		if !slices.Contains(activities, line.Activity) {
			skipped++
			if len(names) < otherNames {
				names[line.Activity] = true
			}
			return nil
		}
		found = true
		return do(line)
	})
	if err == nil && !found {
		err = nothing(t, strings.Join(slices.Compact(activities), ", "), slices.Sorted(maps.Keys(names)))
	}
	return skipped, err
}

// each calls do with each line, until the end or an error.
func (r *Replay) each(ctx context.Context, t *traffic.Reader, do func(traffic.Line) error) error {
	for n := int64(1); ; n++ {
		line, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(line)
		}
		if err != nil {
			return err
		}
		if n%progressLines != 0 {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.Progress != nil {
			r.Progress(n)
		}
	}
}

// nothing returns the error for traffic without a request of the activity.
func nothing(t *traffic.Reader, activity string, others []string) error {
	switch {
	case t.Bad > 0 && len(others) == 0:
		return fmt.Errorf("%s contains no requests, only bad lines (%d); the first: %s", t.Name(), t.Bad, t.FirstBad[0])
	case len(others) == 0:
		return fmt.Errorf("%s contains no requests, want CSV with a header and lines below it, JSON lines or a log", t.Name())
	}
	for i, name := range others {
		others[i] = strings.Trim(fmt.Sprintf("%+.40q", name), `"`)
	}
	return fmt.Errorf("%s has no request of the activity %+.40q, only of %s", t.Name(), activity, strings.Join(others, ", "))
}

// Users don't share counts. So several shards can decide at the same time, each
// the requests of its own users, in their order. With subjects, they share counts, and
// there is one shard.

const (
	batch     = 512 // requests that a shard gets at once
	waiting   = 4   // batches that wait for a shard
	maxShards = 8   // more would wait for the reader of the files
)

// A shard decides the requests of some of the users, under each policy.
type shard struct {
	next     []traffic.Line
	queue    chan []traffic.Line
	deciders []*decider
	reports  []*Report
}

type shards struct {
	all  []*shard
	seed maphash.Seed
	busy sync.WaitGroup
}

// newShards starts one shard for each processor. If shared is set, the members count in
// the same items.
func newShards(all []Member, shared bool, subjects []Subject) *shards {
	s := &shards{seed: maphash.MakeSeed()}
	n := min(runtime.GOMAXPROCS(0), maxShards)
	if len(subjects) > 0 {
		n = 1
	}
	for range n {
		one := &shard{queue: make(chan []traffic.Line, waiting)}
		for i, m := range all {
			d := newDecider(m.Policy, false)
			if shared && i > 0 {
				d.items = one.deciders[0].items
			}
			d.request.Activity = m.Activity
			for _, s := range subjects {
				one := newDecider(s.Policy, false)
				one.request.Activity, one.numbers = s.Name, false
				d.subjects = append(d.subjects, one)
			}
			one.deciders = append(one.deciders, d)
			one.reports = append(one.reports, newReport(m.Activity, m.Policy, subjects))
		}
		s.all = append(s.all, one)
		s.busy.Go(one.run)
	}
	return s
}

// add gives a request to the shard of its user.
func (s *shards) add(line traffic.Line) {
	one := s.all[maphash.String(s.seed, line.User)%uint64(len(s.all))]
	one.next = append(one.next, line)
	if len(one.next) == batch {
		one.queue <- one.next
		one.next = make([]traffic.Line, 0, batch)
	}
}

// end waits until all requests are decided, and returns a report for each policy.
func (s *shards) end() []*Report {
	for _, one := range s.all {
		one.queue <- one.next
		close(one.queue)
	}
	s.busy.Wait()
	reports := s.all[0].reports
	for _, one := range s.all[1:] {
		for i, r := range one.reports {
			reports[i].join(r)
		}
	}
	return reports
}

func (s *shard) run() {
	for lines := range s.queue {
		for _, line := range lines {
			for i, d := range s.deciders {
				if r := s.reports[i]; r.Activity == line.Activity {
					r.count(line, d.check(line))
				}
			}
		}
	}
}

// A decider decides requests with the code of a guard's limiter. It takes the
// place of the limiter's store and memory: it holds each user's true state, and
// each request is new. The store in memory would need six times as long, because
// it copies an item for each write and looks for the request's id.
type decider struct {
	request ratelimit.Request
	numbers bool // the policy takes a line's number
	figures bool // decisions have all figures, and not only those that a report needs
	items   map[ratelimit.Key]*item
	full    int // with this number of items, expired ones are dropped

	subjects []*decider // that must allow a request, too; they decide nothing by themselves
}

type item struct {
	state   policy.State
	expires int64 // Unix seconds

	// No request of the decider by passes from the time refused to the time until, in
	// Unix milliseconds. In a replay nothing is given back.
	by             *decider
	refused, until int64
}

// minSweep is how many items a decider holds before it drops expired ones.
const minSweep = 1024

func newDecider(p policy.Policy, figures bool) *decider {
	return &decider{
		request: ratelimit.Request{Policy: p, Count: 1}, numbers: p.TakesNumber(), figures: figures,
		items: make(map[ratelimit.Key]*item), full: minSweep,
	}
}

func (d *decider) check(line traffic.Line) (a ratelimit.Decision) {
	if len(d.subjects) > 0 {
		return d.checkAll(line)
	}
	now := line.Time
	i, request := d.item(line.User, now), d.asked(line)
	if !d.figures && request == &d.request && i.by == d && i.refused <= now && now < i.until {
		a.Reason, a.Wait = ratelimit.Limited, time.Duration(i.until-now)*time.Millisecond
		return a
	}
	if limit, low := request.Policy.TooLow(1); low {
		a.Reason, a.LimitedBy = ratelimit.Limited, limit
	} else {
		a = request.CountIn(now, &i.state)
	}
	if d.figures && a.Limit == 0 {
		a.Reading = d.request.Policy.Read(now, 0, i.state)
	}
	i.until = 0
	if a.Reason == ratelimit.Limited && request == &d.request {
		i.by, i.refused, i.until = d, now, now+a.Wait.Milliseconds()
	}
	return a
}

// asked returns the request of a line, by the number that it may have.
func (d *decider) asked(line traffic.Line) *ratelimit.Request {
	if !d.numbers || line.Limit == nil {
		return &d.request
	}
	r := d.request
	r.Policy = r.Policy.With(func(string) (int64, bool) { return *line.Limit, true })
	return &r
}

// checkAll decides a request that counts for subjects, too. If one of them refuses, none
// counts it, because a guard gives back what was counted before a refusal. LimitedBy of a
// refusal is the activity, for its user, or the name of the subject.
func (d *decider) checkAll(line traffic.Line) ratelimit.Decision {
	parts := []*decider{d}
	items := []*item{d.item(line.User, line.Time)}
	for i, s := range d.subjects {
		if id := line.Subjects[i]; id != "" {
			parts, items = append(parts, s), append(items, s.item(id, line.Time))
		} else {
			parts, items = append(parts, nil), append(items, nil)
		}
	}
	for i, p := range parts {
		if p == nil {
			continue
		}
		asked := p.asked(line).Policy
		if _, low := asked.TooLow(1); low {
			return ratelimit.Decision{Reason: ratelimit.Limited, LimitedBy: p.request.Activity}
		}
		if r := asked.Read(line.Time, 1, items[i].state); r.Wait > 0 {
			return ratelimit.Decision{Reason: ratelimit.Limited, Reading: r, LimitedBy: p.request.Activity}
		}
	}
	for i, p := range parts {
		if p != nil {
			p.asked(line).CountIn(line.Time, &items[i].state)
		}
	}
	return ratelimit.Decision{Allowed: true, Reason: ratelimit.OK, Granted: 1}
}

// item returns the user's item for the time now, in Unix milliseconds. Each time
// the number of items has doubled, it drops those that have expired. So a decider
// holds at most about twice as many as still matter.
func (d *decider) item(user string, now int64) *item {
	window, expires := d.request.Policy.Item(now)
	key := ratelimit.Key{UserID: user, Window: window}
	i := d.items[key]
	if i == nil {
		if len(d.items) >= d.full {
			maps.DeleteFunc(d.items, func(_ ratelimit.Key, i *item) bool { return i.expires < now/1000 })
			d.full = max(minSweep, 2*len(d.items))
		}
		i = new(item)
		d.items[key] = i
	}
	i.expires = max(i.expires, expires)
	return i
}
