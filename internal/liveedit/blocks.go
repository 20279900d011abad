package liveedit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// The most that the document of blocks holds. DynamoDB's own bound for an item is 400 KB.
const (
	maxBlocks     = 1000
	maxBlockBytes = 200_000
	maxReason     = 60 // bytes
)

// ReadBlocks returns the current blocks and their version; 0: there is no document.
func ReadBlocks(ctx context.Context, from live.Source) (b live.Blocks, version int64, err error) {
	stored, err := from.Blocks(ctx, true)
	if err != nil {
		return b, 0, err
	}
	b, err = stored.Blocks()
	return b, stored.Version, err
}

// BlocksAt returns the blocks that are in force at now, in the order of their ends. It
// never returns nil.
func BlocksAt(b live.Blocks, now time.Time) []live.Block {
	all := slices.DeleteFunc(append([]live.Block{}, b.All...), func(one live.Block) bool { return !one.InForce(now) })
	slices.SortStableFunc(all, func(a, b live.Block) int { return a.Until.Compare(b.Until) })
	return all
}

// Block adds a block, which replaces the one of the same user or subject and activity. It
// drops blocks that have ended. C has the time of the change; Block fills in the rest. If
// somebody else changes the blocks at the same time, it tries again.
func Block(ctx context.Context, t Table, c Change, b live.Block) error {
	if err := ValidateBlock(b); err != nil {
		return err
	}
	c.Op, c.Activity, c.Subject, c.Until, c.Why = "block", b.Activity, limits.SubjectName(b.UserID), b.Until, cmp.Or(c.Why, b.Reason)
	by, err := c.stamp()
	if err != nil {
		return err
	}
	b.Set, b.Set.Why = by, "" // the history has it
	return untilStored(func() error {
		return editBlocks(ctx, t, c, func(all, _ []live.Block) ([]live.Block, error) {
			all = slices.DeleteFunc(all, func(old live.Block) bool { return old.UserID == b.UserID && old.Activity == b.Activity })
			return append(all, b), nil
		})
	})
}

// Unblock lifts the blocks of a user or a subject, and returns them. If activity is not
// empty, it lifts only the one of this activity. Blocks that have ended do not count. If
// somebody else changes the blocks at the same time, it tries again.
func Unblock(ctx context.Context, t Table, c Change, key, activity string) (lifted []live.Block, err error) {
	return unblock(ctx, t, c, key, activity, false)
}

// ForgetBlocks drops all blocks of a user or a subject from the table, also those that have
// ended. If somebody else changes the blocks at the same time, it tries again.
func ForgetBlocks(ctx context.Context, t Table, key string, now time.Time) error {
	_, err := unblock(ctx, t, Change{At: now, By: "erase"}, key, "", true)
	return err
}

func unblock(ctx context.Context, t Table, c Change, key, activity string, forget bool) (lifted []live.Block, err error) {
	c.Op, c.Activity, c.Subject = "unblock", activity, limits.SubjectName(key)
	if _, err := c.stamp(); err != nil {
		return nil, err
	}
	err = untilStored(func() error {
		return editBlocks(ctx, t, c, func(all, ended []live.Block) ([]live.Block, error) {
			lifted = nil
			all = slices.DeleteFunc(all, func(b live.Block) bool {
				ends := b.UserID == key && (activity == "" || b.Activity == activity)
				if ends {
					lifted = append(lifted, b)
				}
				return ends
			})
			if !slices.ContainsFunc(ended, func(b live.Block) bool { return forget && b.UserID == key }) && len(lifted) == 0 {
				return nil, errNothing
			}
			return all, nil
		})
	})
	return lifted, err
}

// editBlocks stores what edit makes of the blocks that have not ended. Edit also gets those
// that have, which are dropped.
func editBlocks(ctx context.Context, t Table, c Change, edit func(all, ended []live.Block) ([]live.Block, error)) error {
	now, version, err := ReadBlocks(ctx, t)
	if err != nil {
		return err
	}
	was, err := now.Stored(version)
	if err != nil {
		return err
	}
	var all, ended []live.Block
	for _, b := range now.All {
		if b.InForce(c.At) {
			all = append(all, b)
		} else {
			ended = append(ended, b)
		}
	}
	before := len(now.All)
	if now.All, err = edit(all, ended); err != nil {
		return err
	}
	c.Version = version + 1
	stored, err := now.Stored(c.Version)
	if err != nil {
		return err
	}
	switch { // what takes less room than before is always right
	case len(now.All) > max(before, maxBlocks):
		return fmt.Errorf("there would be %d blocks, want at most %d: unblock some first, or shorten them", len(now.All), maxBlocks)
	case len(stored.Document) > max(len(was.Document), maxBlockBytes):
		return fmt.Errorf("the blocks would take %d KB, want at most %d: unblock some first, or give shorter reasons", len(stored.Document)/1000, maxBlockBytes/1000)
	}
	return t.ChangeBlocks(ctx, version, stored, c)
}

// ValidateBlock returns an error that names what is wrong with b.
func ValidateBlock(b live.Block) error {
	if err := live.CheckKey(b.UserID); err != nil {
		return err
	}
	switch {
	case b.Until.IsZero():
		return errors.New("a block needs a time when it ends")
	case b.Reason == "" || len(b.Reason) > maxReason:
		return fmt.Errorf("the reason of a block has %d bytes, want 1 to %d", len(b.Reason), maxReason)
	}
	return nil
}
