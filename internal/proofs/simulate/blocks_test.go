package simulate_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
)

// Blocks implements [live.Source].
func (t *settings) Blocks(context.Context, bool) (live.Stored, error) {
	return t.blocked.inForce(t.sim.now).Stored, nil
}

// ChangeBlocks implements [liveedit.Table].
func (t *settings) ChangeBlocks(_ context.Context, before int64, after live.Stored, _ liveedit.Change) error {
	return t.blocked.change(t.sim.now, before, after)
}

// block blocks somebody until a time, or lifts blocks. The name of a block is the key of the user
// or subject, a space, and the activity; without an activity, it is of all.
func (s *sim) block() {
	until := maps.Clone(s.settings.blocked.inForce(s.now).set)
	if until == nil {
		until = map[string]string{}
	}
	maps.DeleteFunc(until, func(_, end string) bool { return millis(end) <= s.now }) // which an edit drops
	who, activity := s.userOrSubject(), ""
	if s.chance(2) {
		activity = s.anActivity().Name
	}
	var err error
	change := liveedit.Change{At: time.UnixMilli(s.now)}
	if s.chance(3) {
		mine := func(key, _ string) bool {
			return key == who+" "+activity || activity == "" && strings.HasPrefix(key, who+" ")
		}
		had := len(until)
		maps.DeleteFunc(until, mine)
		lifted, failed := liveedit.Unblock(context.Background(), &s.settings, change, who, activity)
		if err = failed; err == nil && len(lifted) != had-len(until) {
			s.fail("%d blocks are lifted, want %d", len(lifted), had-len(until))
		}
		if len(lifted) == 0 {
			return
		}
	} else {
		end := s.now + 1 + s.upTo(120_000)
		until[who+" "+activity] = strconv.FormatInt(end, 10)
		err = liveedit.Block(context.Background(), &s.settings, change, live.Block{UserID: who, Activity: activity, Until: time.UnixMilli(end), Reason: "r"})
	}
	if err != nil {
		s.fail("the blocks can't be changed: %v", err)
		return
	}
	s.settings.blocked[len(s.settings.blocked)-1].set = until
	s.stats["changes of the blocks"]++
	s.line("an operator changes the blocks to %v", until)
}

// userOrSubject returns the key of somebody.
func (s *sim) userOrSubject() string {
	if s.subjects() && s.chance(2) {
		return limits.SubjectID(others[s.random.IntN(len(others))], strconv.Itoa(s.random.IntN(2)))
	}
	return s.aUser()
}

// Blocks implements [live.Source] for one instance, as Settings does. It runs beside that
// read, so it draws numbers of its own.
func (in *instance) Blocks(_ context.Context, consistent bool) (live.Stored, error) {
	s, at := in.sim, in.sim.now
	random := rand.New(rand.NewPCG(s.seed^uint64(in.number), uint64(s.now)))
	in.blocks.read = true
	if in.blocks.failed = random.IntN(8) == 0 || s.now < in.downUntil; in.blocks.failed {
		return live.Stored{}, errors.New("away")
	}
	if !consistent && random.IntN(5) == 0 {
		at -= random.Int64N(1001)
	}
	return s.settings.blocked.inForce(at).Stored, nil
}

// blockEnd returns when the last block ends that keeps the caller from the activity; 0: none does.
func (d settled) blockEnd(c call, a limits.Activity, at int64) (last int64) {
	keys := []string{c.UserID}
	for _, sub := range a.Subjects {
		if id, ok := c.subjects[sub.Name]; ok {
			keys = append(keys, limits.SubjectID(sub.Name, id))
		}
	}
	for _, key := range keys {
		for _, of := range []string{"", a.Name} {
			if end := millis(d.set[key+" "+of]); end > at {
				last = max(last, end)
			}
		}
	}
	return last
}

// judgeBlock judges the block that an instance goes by: one of a document that was in force
// when it last looked.
func (in *instance) judgeBlock(c call, got live.Block) {
	s, end := in.sim, int64(0)
	if !got.Until.IsZero() {
		end = got.Until.UnixMilli()
	}
	for v := range s.settings.blocked.between(in.blocks) {
		if v.blockEnd(c, s.named(c.Activity), in.millis()) == end {
			return
		}
	}
	s.fail("instance %d goes by a block of %s until %d, which was not in force at its last look", in.number, c.UserID, end)
}
