package ratelimit

import (
	"container/list"
	"slices"
	"sync"
)

// A Memory keeps what this process knows of each key. It has a limit in bytes:
// when it is full, it drops the keys that were not used for the longest time.
// It is safe for concurrent use. The nil Memory keeps nothing.
//
// It keeps the items that the store brought, and copies of what it knows share their
// slices, which never change. A full log of 100 actions takes about 3 KB.
type Memory struct {
	Crowd int // how many ids the item of a prepaid limit has before its writes go without; proofs lower it

	// NoLeases is for a process that ends without notice, or whose memory is copied: it would
	// lose its leases, or hand them out twice. A check of a busy prepaid key then takes just
	// its own actions, by a write without an id.
	NoLeases bool

	mu     sync.Mutex
	most   int // bytes
	bytes  int
	byKey  map[Key]*list.Element // of *entry
	recent list.List             // the most recent one first
}

type entry struct {
	key   Key
	known Known
}

// DefaultMemory is the most bytes that a Memory should take.
const DefaultMemory = 64 << 20

// NewMemory returns a Memory that takes at most this many bytes. It always
// keeps the last key, even if that key alone takes more.
func NewMemory(most int) *Memory {
	return &Memory{Crowd: 100, most: most, byKey: make(map[Key]*list.Element)}
}

// Recall returns what is known of k. The zero Known: nothing is known.
func (m *Memory) Recall(k Key) Known {
	if m == nil {
		return Known{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	el, ok := m.byKey[k]
	if !ok {
		return Known{}
	}
	m.recent.MoveToFront(el)
	known := el.Value.(*entry).known
	known.leases = slices.Clone(known.leases) // these change in place
	return known
}

// Change calls change with what is known of k, and stores what change returns.
// Both happen in one atomic step. Change must not use the Memory. On a nil
// Memory nothing happens.
func (m *Memory) Change(k Key, change func(Known) Known) {
	if m == nil {
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
	e.known = change(e.known)
	m.bytes += e.size()
	for m.bytes > m.most && m.recent.Len() > 1 {
		oldest := m.recent.Remove(m.recent.Back()).(*entry)
		delete(m.byKey, oldest.key)
		m.bytes -= oldest.size()
	}
}

// How many bytes these take. TestMemoryIsBounded measures it.
const (
	overhead    = 448 // a key in addition to its text and its items: the entry, the list element and the slot in the map
	leaseSize   = 256 // a lease in addition to its item
	attrSize    = 24
	setSize     = 40
	elementSize = 16
)

// size returns how many bytes e takes.
func (e *entry) size() int {
	size := overhead + len(e.key.UserID) + len(e.key.Activity) + e.known.Seen.size() + e.known.Fallback.size()
	for _, l := range e.known.leases {
		size += leaseSize + l.seen.size()
	}
	return size
}

// size returns how many bytes the slices of i take. It adds an eighth, because the runtime
// rounds an allocation up by at most that much.
func (i Item) size() int {
	size := cap(i.State)*attrSize + cap(i.IDs)*setSize
	for _, a := range i.State {
		size += len(a.Name)
	}
	for _, set := range i.IDs {
		size += cap(set.Elements) * elementSize
	}
	return size + size/8
}
