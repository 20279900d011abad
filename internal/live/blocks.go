package live

import (
	"errors"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/strictjson"
)

// A Block keeps a user or a subject from one activity, or from all, until a time. It holds
// whatever their limit, tier or role is.
type Block struct {
	UserID   string    `json:"userId"`            // or the key of a subject, see [limits.SubjectID]
	Activity string    `json:"activity,omitzero"` // empty: all
	Until    time.Time `json:"until"`
	Reason   string    `json:"reason"` // for operators; users never see it
	Set      Stamp     `json:"set,omitzero"`
}

// InForce reports whether a block holds at now. The zero Block never does.
func (b Block) InForce(now time.Time) bool { return now.Before(b.Until) }

// Blocks are the content of the document of blocks. It is an item of its own, which code
// from before there were blocks does not read.
type Blocks struct {
	All     []Block
	Damaged Damaged
}

// Blocks returns the blocks that a table keeps in this form. The error has the type
// *DocumentError: the document itself is damaged, and the blocks are those that can still be
// found.
func (s Stored) Blocks() (b Blocks, err error) {
	if s.Version == 0 {
		return b, nil
	}
	var e entries
	if err = e.find(s.Document, map[string]strictjson.Kind{"blocks": '['}); err != nil {
		err = &DocumentError{err}
	}
	for i, entry := range e.listed {
		one, err := parseBlock(entry)
		if err != nil {
			b.Damaged.add(fmt.Sprint("block ", i+1), err)
			b.Damaged.Blocks = append(b.Damaged.Blocks, entry)
			continue
		}
		b.All = append(b.All, one)
	}
	return b, err
}

// parseBlock reads one entry. It ignores members that it does not know, because a newer
// version may have written them.
func parseBlock(entry []byte) (b Block, err error) {
	if err := strictjson.Unmarshal(entry, &b); err != nil {
		return b, err
	}
	if b.Until.IsZero() {
		return b, errors.New("a block has no end")
	}
	return b, CheckKey(b.UserID)
}

// CheckKey returns an error unless key is the id of a user or the key of a subject.
func CheckKey(key string) error {
	if _, id, ok := limits.SubjectOf(key); ok {
		key = id
	}
	return input.CheckUserID(key)
}

// Stored returns the blocks as a table keeps them under this version.
func (b Blocks) Stored(version int64) (Stored, error) {
	var all []strictjson.Value
	for _, one := range b.All {
		entry, err := strictjson.Marshal(one)
		if err != nil {
			return Stored{}, err
		}
		all = append(all, entry)
	}
	text, err := marshal(map[string]any{"blocks": append(all, b.Damaged.Blocks...)})
	return Stored{Version: version, Document: text}, err
}

// With returns the limits with these blocks instead of the ones that l has. L may be nil.
func (l *Limits) With(b Blocks) *Limits {
	byKey := make(map[string][]Block, len(b.All))
	for _, one := range b.All {
		byKey[one.UserID] = append(byKey[one.UserID], one)
	}
	if l == nil {
		l = &unchanged
	}
	return l.with(byKey)
}

func (l *Limits) with(blocks map[string][]Block) *Limits {
	with := *l
	if with.blocks = blocks; with.after != nil {
		with.after = with.after.with(blocks)
	}
	return &with
}

// BlocksOf returns the blocks of a user or a subject, also those that have ended.
func (l *Limits) BlocksOf(key string) []Block {
	if l == nil {
		return nil
	}
	return l.blocks[key]
}

// blocked returns the block of the user or of a subject in t that ends last, and that subject's
// name. If none holds, it is zero.
func (l *Limits) blocked(c Query, t Terms) (last Block, name string) {
	for part := range t.Parts {
		for _, b := range l.blocks[part.UserID] {
			if b.InForce(c.At) && (b.Activity == "" || b.Activity == c.Activity.Name) && b.Until.After(last.Until) {
				last, name = b, part.Name
			}
		}
	}
	return last, name
}
