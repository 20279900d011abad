package ratelimit

import (
	"container/list"
	"sync"
)

// A Memory keeps what this process knows of each key. It is bounded in bytes,
// and drops the least recently used keys. It is safe for concurrent use. The
// nil Memory keeps nothing.
//
// It packs each key's state into one string. A full log of 100 actions takes
// about 2 KB that way instead of 15, and the garbage collector has no pointers
// to follow.
type Memory struct {
	mu      sync.Mutex
	most    int // bytes
	bytes   int
	byKey   map[Key]*list.Element // of *entry
	recent  list.List             // the most recent one first
	scratch []byte                // reused by Change
}

type entry struct {
	key    Key
	packed string
}

// DefaultMemory is the most bytes that a Memory should take.
const DefaultMemory = 64 << 20

// NewMemory returns a Memory that takes at most this many bytes. One key always
// stays.
func NewMemory(most int) *Memory {
	return &Memory{most: most, byKey: make(map[Key]*list.Element)}
}

// Recall returns what is known of k. The zero Known means that nothing is
// known.
func (m *Memory) Recall(k Key) Known {
	if m == nil {
		return Known{}
	}
	m.mu.Lock()
	var packed string
	if el, ok := m.byKey[k]; ok {
		m.recent.MoveToFront(el)
		packed = el.Value.(*entry).packed
	}
	m.mu.Unlock()
	return unpack(packed)
}

// Change replaces what is known of k by what change returns for it, in one
// atomic step.
func (m *Memory) Change(k Key, change func(Known) Known) {
	if m == nil {
		change(Known{})
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	el, ok := m.byKey[k]
	if !ok {
		el = m.recent.PushFront(&entry{key: k})
		m.byKey[k] = el
		m.bytes += el.Value.(*entry).size()
	}
	m.recent.MoveToFront(el)
	e := el.Value.(*entry)
	m.bytes -= e.size()
	m.scratch = pack(m.scratch[:0], change(unpack(e.packed)))
	e.packed = string(m.scratch)
	m.bytes += e.size()
	for m.bytes > m.most && m.recent.Len() > 1 {
		m.drop(m.recent.Back())
	}
}

func (m *Memory) drop(el *list.Element) {
	e := m.recent.Remove(el).(*entry)
	delete(m.byKey, e.key)
	m.bytes -= e.size()
}

// overhead is what a key takes beside its text and its packed state: the entry,
// the list element and the slot in the map. TestMemoryIsBounded measures it.
const overhead = 320

// size returns how many bytes e takes. The runtime rounds an allocation up by
// at most an eighth.
func (e *entry) size() int {
	return overhead + len(e.key.UserID) + len(e.key.Activity) + len(e.packed) + len(e.packed)/8
}
