package explore

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// An explorer visits every state that a system can reach, and checks each move
// between them.
type explorer struct {
	*system
	keys []ratelimit.Key // of the items that can come into being

	items     *table[ratelimit.Item]
	writes    *table[ratelimit.Write]
	instances *table[instance]
	results   *set[result]
	calls     *table[call]
	shelves   *table[shelf]
	ledgers   *ledgers
	replies   *set[answer]
	messages  *set[message]
	keeps     *set[kept]
	procs     *set[proc]
	lates     *set[[maxLate]uint32]

	tolds   *set[told]
	asks    []ask // what the decision wants next, by the number of told
	effects map[effect]performed
	started map[started]uint32 // the number of each call

	states, transitions int
	leased              int // hand-outs of a lease; each leads to a state
	excuses             map[exception]int

	some, together []entry // see which and series

	watch *timeline // of a violation; nil: nobody watches
}

// A started is what a call depends on: its slot, the limit that its instance follows, and what
// the request that it refers to was told.
type started struct {
	slot, limit uint8
	of          uint32
}

// An effect is an update of a shelf for a call, and performed is its result. Both are kept,
// because many interleavings perform the same update.
type effect struct{ store, write, call uint32 }

type performed struct {
	store  uint32
	answer answer
	full   bool  // see isFull
	room   bool  // the store refused it, and has room for the request, or for one action of a partial request
	wrong  error // why DynamoDB would refuse the request
}

func newExplorer(y *system) *explorer {
	return &explorer{
		system: y, keys: y.keys(),
		items: newTable[ratelimit.Item](), writes: newTable[ratelimit.Write](), instances: newTable[instance](), results: newSet[result](),
		calls: newTable[call](), shelves: newTable[shelf](), ledgers: newLedgers(), replies: newSet[answer](), messages: newSet[message](),
		keeps: newSet[kept](), procs: newSet[proc](), lates: newSet[[maxLate]uint32](),
		tolds: newSet[told](), asks: make([]ask, 1), excuses: map[exception]int{}, effects: map[effect]performed{}, started: map[started]uint32{},
	}
}

// begin returns the first state.
func (x *explorer) begin() (w world, err error) {
	l := &ledger{facts: facts{freedBy: -1, whole: x.locks()}}
	p, at, user := x.policies[0], x.time(0, 0), users[0]
	if len(x.room) > 0 && !p.Prepaid() {
		p, user = x.room[0], room
	}
	k := ratelimit.Key{UserID: user, Activity: "act"}
	var expires int64
	k.Window, expires = p.Item(at)
	for left := x.prefill; left > 0; left -= p.Max() {
		before := x.items.at(x.item(w.store, x.number(k))).State
		n := min(left, p.Max())
		u, ok := p.Take(at, n, 1, before)
		if !ok {
			break // another of several limits is full before
		}
		rest := &written{slot: old, item: int64(x.number(k)), ms: x.instants[0], call: ratelimit.Request{Count: n, Policy: p.Policy}, before: before, write: ratelimit.Write{
			Key: k, ID: ratelimit.NewID(fmt.Sprint("rest", left)), Note: u.ReadyAt, Update: u, Now: at, Expires: expires,
			KeepAll: k.Window != 0 && p.Highest() <= 100,
		}}
		done := x.perform(effect{store: w.store, write: x.writes.number(rest.write)})
		if done.wrong != nil {
			return w, done.wrong
		}
		w.store, rest.after = done.store, x.items.at(done.answer.item).State
		if err := x.counted(l, rest); err != nil {
			return w, err
		}
		l.entries[len(l.entries)-1].forgotten = true // nobody asks for it again
	}
	if p.Prepaid() {
		l.told = slices.Clone(l.entries)
	}
	w.ledger = x.ledgers.number(l)
	return w, nil
}

// perform performs an update in the store.
func (x *explorer) perform(e effect) performed {
	if done, ok := x.effects[e]; ok {
		return done
	}
	write := x.writes.at(e.write)
	s := x.shelves.at(e.store).copied(len(x.keys))
	i := x.number(write.Key)
	before := s.items[i]
	item, done := x.items.at(before).Write(write)
	for _, set := range item.IDs { // a set has no order
		slices.SortFunc(set.Elements, func(a, b ratelimit.Element) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	}
	a := answer{item: x.items.number(item), done: done}
	if done {
		s.items[i] = a.item
		if write.Expires != 0 {
			s.expires[i] = write.Expires
		}
	}
	c := x.calls.at(e.call)
	p := performed{
		store: x.shelves.number(s), answer: a, wrong: changedTwice(write),
		full: x.isFull(write, c.of(write.Key), before, a.item), room: !done && x.hasRoom(c.request, write.Now, a),
	}
	x.effects[e] = p
	return p
}

// changedTwice returns an error if an update changes an attribute twice.
func changedTwice(w ratelimit.Write) error {
	sets := slices.Concat(w.Forget(), []string{w.Into().Set, w.Drop.Set})
	for i, set := range sets {
		if set != "" && slices.Contains(sets[:i], set) {
			return fmt.Errorf("an update changes the attribute %s twice, which DynamoDB refuses", set)
		}
	}
	return nil
}

func (s shelf) copied(n int) shelf {
	if s.items == nil {
		return shelf{make([]uint32, n), make([]int64, n)}
	}
	return shelf{slices.Clone(s.items), slices.Clone(s.expires)}
}

// number returns the number of the item with the key k.
func (x *explorer) number(k ratelimit.Key) int {
	i := slices.Index(x.keys, k)
	if i < 0 {
		panic(fmt.Sprintf("the key %v is not one of %v", k, x.keys))
	}
	return i
}

// item returns what the store holds as the item with this number.
func (x *explorer) item(store uint32, i int) uint32 {
	if s := x.shelves.at(store); s.items != nil {
		return s.items[i]
	}
	return 0
}

// policyOf returns the policy of the item with this number, for the request in slot s and
// an instance that follows a limit. With the slot old it is the one that costs less, which
// shows what an item counts.
func (x *explorer) policyOf(item, s int, limit uint8) *rules {
	user, inRoom := x.terms(s, limit)
	if x.keys[item].UserID == room {
		return inRoom
	}
	return user
}

// remove deletes an item.
func (x *explorer) remove(store uint32, i int) uint32 {
	s := x.shelves.at(store).copied(len(x.keys))
	s.items[i], s.expires[i] = 0, 0
	return x.shelves.number(s)
}

// tell gives a decision the next thing it is told.
func (x *explorer) tell(t told) uint32 {
	n := x.tolds.number(t)
	if int(n) == len(x.asks) { // it is new
		x.asks = append(x.asks, x.decide(n))
	}
	return n
}
