package explore

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A table gives each different value a number, so that states are small and two
// equal values have one number. Number 0 is the zero value.
type table[T any] struct {
	numbers map[string]uint32
	values  []T
	encode  func([]byte, T) []byte
	scratch []byte
}

func newTable[T any](encode func([]byte, T) []byte) *table[T] {
	t := &table[T]{numbers: map[string]uint32{}, encode: encode}
	var zero T
	t.number(zero)
	return t
}

func (t *table[T]) number(v T) uint32 {
	t.scratch = t.encode(t.scratch[:0], v)
	if n, ok := t.numbers[string(t.scratch)]; ok {
		return n
	}
	n := uint32(len(t.values))
	t.numbers[string(t.scratch)] = n
	t.values = append(t.values, v)
	return n
}

func (t *table[T]) at(n uint32) T { return t.values[n] }

// The functions below write values so that equal values have equal bytes.

func encodeInt(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

func encodeText(b []byte, text string) []byte {
	return append(encodeInt(b, int64(len(text))), text...)
}

func encodeBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func encodeTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return encodeInt(b, 0)
	}
	return encodeInt(b, t.UnixNano())
}

func encodeItem(b []byte, i ratelimit.Item) []byte {
	b = encodeInt(b, int64(len(i.State)))
	for _, attr := range slices.Sorted(maps.Keys(i.State)) {
		b = encodeInt(encodeText(b, attr), i.State[attr])
	}
	b = encodeInt(b, int64(len(i.IDs)))
	for _, set := range slices.Sorted(maps.Keys(i.IDs)) {
		marks := slices.SortedFunc(slices.Values(i.IDs[set]), func(a, b ratelimit.Mark) int {
			return slices.Compare(encodeMark(nil, a), encodeMark(nil, b))
		})
		b = encodeInt(encodeText(b, set), int64(len(marks)))
		for _, m := range marks {
			b = encodeMark(b, m)
		}
	}
	return b
}

func encodeMark(b []byte, m ratelimit.Mark) []byte { return encodeInt(append(b, m.ID[:]...), m.Note) }

func encodeKept(b []byte, k ratelimit.Kept) []byte { return encodeMark(encodeText(b, k.Set), k.Mark) }

func encodeKnown(b []byte, k ratelimit.Known) []byte {
	b = encodeItem(encodeItem(b, k.Seen), k.Alone)
	if l := leases(k); l.Len() > 0 {
		b = fmt.Append(b, l)
	}
	return encodeTime(encodeTime(b, k.Asked), k.Doubted)
}

func encodeWrite(b []byte, w ratelimit.Write) []byte {
	b = encodeInt(encodeText(append(b, w.ID[:]...), w.Key.UserID), w.Key.Window)
	b = encodeKept(encodeBool(encodeInt(encodeInt(encodeInt(b, w.Note), w.Now), w.Expires), w.Whole), w.Drop)
	for _, terms := range append(slices.Clip(w.Update.If), w.Update.Also) {
		b = encodeInt(b, int64(len(terms)))
		for _, t := range terms {
			b = encodeBool(encodeInt(encodeInt(encodeText(b, t.Attr), t.From), t.To), t.OrMissing)
		}
	}
	b = encodeInt(b, -1)
	for _, a := range w.Update.Acts {
		b = encodeInt(encodeText(append(b, byte(a.Verb)), a.Attr), a.Value)
	}
	return encodeInt(encodeInt(b, -1), w.Update.ReadyAt)
}
