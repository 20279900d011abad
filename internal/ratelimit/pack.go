package ratelimit

import (
	"encoding/binary"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// pack appends k to b in a compact form:
//
//	Asked, Invalidated  two Unix times in ns; 0: the zero time
//	Seen            an item
//	Fallback        an item
//
// An item is the number of its attributes, then each name and value, then the
// number of its sets, then each name and its ids. A name is its length and its
// letters. Numbers are varints, so small ones take one byte.
func pack(b []byte, k Known) []byte {
	for _, t := range []time.Time{k.Asked, k.Invalidated} {
		var nanos int64
		if !t.IsZero() {
			nanos = t.UnixNano()
		}
		b = binary.AppendVarint(b, nanos)
	}
	b = packItem(b, k.Seen)
	return packItem(b, k.Fallback)
}

// unpack returns the Known that pack wrote. The empty string is the zero Known.
func unpack(packed string) (k Known) {
	if len(packed) == 0 {
		return k
	}
	r := reader{packed}
	k.Asked, k.Invalidated = r.time(), r.time()
	k.Seen = r.item()
	k.Fallback = r.item()
	return k
}

func packItem(b []byte, i Item) []byte {
	b = binary.AppendUvarint(b, uint64(len(i.State)))
	for name, v := range i.State {
		b = appendText(b, name)
		b = binary.AppendVarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(i.IDs)))
	for set, marks := range i.IDs {
		b = appendText(b, set)
		b = binary.AppendUvarint(b, uint64(len(marks)))
		for _, m := range marks {
			b = append(b, m.ID[:]...)
			b = binary.AppendVarint(b, m.Note)
		}
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// A reader reads what pack wrote. The names that it returns share its memory.
type reader struct{ text string }

func (r *reader) item() (i Item) {
	if n := r.uvarint(); n > 0 {
		i.State = make(policy.State, n)
		for range n {
			name := r.word()
			i.State[name] = r.varint()
		}
	}
	if n := r.uvarint(); n > 0 {
		i.IDs = make(IDs, n)
		for range n {
			set := r.word()
			marks := make([]Element, r.uvarint())
			for m := range marks {
				copy(marks[m].ID[:], r.take(len(ID{})))
				marks[m].Note = r.varint()
			}
			i.IDs[set] = marks
		}
	}
	return i
}

func (r *reader) time() time.Time {
	if n := r.varint(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (r *reader) word() string { return r.take(int(r.uvarint())) }

func (r *reader) take(n int) string {
	word := r.text[:n]
	r.text = r.text[n:]
	return word
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint([]byte(r.text)) // the compiler copies nothing
	r.take(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint([]byte(r.text))
	r.take(n)
	return v
}
