package explore

import (
	"hash/maphash"
	"slices"
)

// ledgers gives each different ledger a number, as a table does. Number 0 is the ledger of
// a run that has not begun.
type ledgers struct {
	numbers map[uint64]uint32 // by the hash of a ledger, or the next free number after it
	values  []ledger
	opened  ledger
}

func newLedgers() *ledgers {
	t := &ledgers{numbers: map[uint64]uint32{}}
	t.number(&ledger{})
	return t
}

// at returns a ledger, which must not change.
func (t *ledgers) at(n uint32) *ledger { return &t.values[n] }

// open returns a copy of a ledger, which can change until another one is opened.
func (t *ledgers) open(n uint32) *ledger {
	t.opened.become(&t.values[n])
	return &t.opened
}

func (t *ledgers) number(l *ledger) uint32 {
	for h := l.hash(); ; h++ {
		n, ok := t.numbers[h]
		switch {
		case !ok:
			n = uint32(len(t.values))
			t.numbers[h] = n
			t.values = append(t.values, ledger{})
			t.values[n].become(l)
			return n
		case t.values[n].equal(l):
			return n
		}
	}
}

// become makes l a copy of from.
func (l *ledger) become(from *ledger) {
	l.facts = from.facts
	l.entries = append(l.entries[:0], from.entries...)
	l.admitted = append(l.admitted[:0], from.admitted...)
	l.back = append(l.back[:0], from.back...)
	l.over = append(l.over[:0], from.over...)
	l.told = append(l.told[:0], from.told...)
	for i := range l.alone {
		l.alone[i] = append(l.alone[i][:0], from.alone[i]...)
	}
}

func (l *ledger) equal(m *ledger) bool {
	return l.facts == m.facts && slices.Equal(l.entries, m.entries) && slices.Equal(l.admitted, m.admitted) &&
		slices.Equal(l.back, m.back) && slices.Equal(l.over, m.over) && slices.Equal(l.told, m.told) &&
		slices.Equal(l.alone[0], m.alone[0]) && slices.Equal(l.alone[1], m.alone[1])
}

var seed = maphash.MakeSeed()

func (l *ledger) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, l.facts)
	add(&h, l.entries)
	add(&h, l.admitted)
	add(&h, l.back)
	add(&h, l.over)
	add(&h, l.told)
	add(&h, l.alone[0])
	add(&h, l.alone[1])
	return h.Sum64()
}

func add[T comparable](h *maphash.Hash, list []T) {
	for i := range list {
		maphash.WriteComparable(h, list[i])
	}
}
