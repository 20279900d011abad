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

// A blockList is the document of who is blocked, in force from a time on.
type blockList struct {
	live.Stored
	since int64
	until map[string]int64 // when each block ends, by the key of whom it blocks, a space, and the activity, if it is of one
}

// blocksAt returns the blocks in force at a time.
func (t *settings) blocksAt(at int64) blockList {
	i := len(t.blocked) - 1
	for i > 0 && t.blocked[i].since > at {
		i--
	}
	return t.blocked[i]
}

// Blocks implements [live.Source].
func (t *settings) Blocks(context.Context, bool) (live.Stored, error) {
	return t.blocksAt(t.sim.now).Stored, nil
}

// ChangeBlocks implements [liveedit.Table].
func (t *settings) ChangeBlocks(_ context.Context, before int64, after live.Stored, _ liveedit.Change) error {
	if before != t.blocksAt(t.sim.now).Version {
		return liveedit.ErrConflict
	}
	t.blocked = append(t.blocked, blockList{since: t.sim.now, Stored: after})
	return nil
}

// block blocks somebody until a time, or lifts blocks.
func (s *sim) block() {
	until := maps.Clone(s.settings.blocksAt(s.now).until)
	if until == nil {
		until = map[string]int64{}
	}
	maps.DeleteFunc(until, func(_ string, end int64) bool { return end <= s.now }) // which an edit drops
	who, activity := s.userOrSubject(), ""
	if s.chance(2) {
		activity = s.anActivity().Name
	}
	var err error
	change := liveedit.Change{At: time.UnixMilli(s.now)}
	if s.chance(3) {
		mine := func(key string, _ int64) bool {
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
		until[who+" "+activity] = end
		err = liveedit.Block(context.Background(), &s.settings, change, live.Block{UserID: who, Activity: activity, Until: time.UnixMilli(end), Reason: "r"})
	}
	if err != nil {
		s.fail("the blocks can't be changed: %v", err)
		return
	}
	s.settings.blocked[len(s.settings.blocked)-1].until = until
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
	return s.settings.blocksAt(at).Stored, nil
}

// end returns when the last block ends that keeps the caller from the activity; 0: none does.
func (b blockList) end(c call, a limits.Activity, at int64) (last int64) {
	keys := []string{c.UserID}
	for _, sub := range a.Subjects {
		if id, ok := c.subjects[sub.Name]; ok {
			keys = append(keys, limits.SubjectID(sub.Name, id))
		}
	}
	for _, key := range keys {
		for _, of := range []string{"", a.Name} {
			if end := b.until[key+" "+of]; end > at {
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
	for i, b := range s.settings.blocked {
		ended := i+1 < len(s.settings.blocked) && s.settings.blocked[i+1].since <= in.blocks.since
		if b.since <= in.blocks.until && !ended && b.end(c, s.named(c.Activity), in.millis()) == end {
			return
		}
	}
	s.fail("instance %d goes by a block of %s until %d, which was not in force at its last look", in.number, c.UserID, end)
}
