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
// A Memory packs what it knows of a key into one string. So a full log of 100
// actions takes about 2 KB instead of 15 KB, and the garbage collector has no
// pointers in it to follow.
type Memory struct {
	Crowd int // how many ids the item of a prepaid limit has before its writes go without; proofs lower it

	// NoLeases is for a process that ends without notice, or whose memory is copied: it would
	// lose its leases, or hand them out twice. A check of a busy prepaid key then takes just
	// its own actions, by a write without an id.
	NoLeases bool

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
	leases []lease // not packed, so that handing out takes no time
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
	var packed string
	var leases []lease
	if el, ok := m.byKey[k]; ok {
		m.recent.MoveToFront(el)
		e := el.Value.(*entry)
		packed, leases = e.packed, slices.Clone(e.leases)
	}
	m.mu.Unlock()
	known := unpack(packed)
	known.leases = leases
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
	known := unpack(e.packed)
	known.leases = e.leases
	known = change(known)
	m.scratch = pack(m.scratch[:0], known)
	e.packed, e.leases = string(m.scratch), known.leases
	m.bytes += e.size()
	for m.bytes > m.most && m.recent.Len() > 1 {
		oldest := m.recent.Remove(m.recent.Back()).(*entry)
		delete(m.byKey, oldest.key)
		m.bytes -= oldest.size()
	}
}

// overhead is how many bytes a key takes in addition to its text and its packed
// state: the entry, the list element and the slot in the map.
// TestMemoryIsBounded measures it.
const overhead = 320

// size returns how many bytes e takes. It adds an eighth of the packed state,
// because the runtime rounds an allocation up by at most that much. A lease has the item
// unpacked, which takes up to eight times as much.
func (e *entry) size() int {
	return overhead + len(e.key.UserID) + len(e.key.Activity) + len(e.packed) + len(e.packed)/8 + len(e.leases)*(overhead+8*len(e.packed))
}
