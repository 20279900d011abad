package ratelimit

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// DefaultCacheSize is how many keys a cache keeps: 24 MB where each has 100 ids.
const DefaultCacheSize = 10_000

// trust is how long after an attempt began its refusal is given again without
// asking the store: so long may one instance still refuse after a release or
// reset on another.
const trust = time.Second

// A Cache keeps the last state seen of each key, the least recently used out.
// It gives refusals again, it hints at how to plan, and it is the store that
// decides while the real one can't be asked. It never admits while that can.
type Cache struct {
	mu     sync.Mutex
	size   int
	byKey  map[Key]*list.Element // of *entry
	recent list.List             // most recent first
}

type entry struct {
	key     Key
	item    Item      // as the store last showed it
	asked   time.Time // when the attempt that brought it began; zero: no refusal may rely on it
	arrived time.Time // when the item came
	doubts  int       // how often the key was doubted
	alone   []Write   // admitted here while the store was away, and not found in it since
	here    *Item     // the item and they; nil: there are none
}

// NewCache makes a cache of size keys, at least 1.
func NewCache(size int) *Cache {
	return &Cache{size: max(1, size), byKey: make(map[Key]*list.Element)}
}

// refuse gives r's refusal again where the state asked for less than a second ago
// refuses it now. A nil cache refuses nothing.
func (c *Cache) refuse(r *Request, now time.Time) (Decision, bool) {
	if c == nil {
		return Decision{}, false
	}
	at := now.UnixMilli()
	w := r.write(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(w.Key)
	if e == nil {
		return Decision{}, false
	}
	if age := now.Sub(e.asked); age < 0 || age > trust { // less than 0: the clock stepped back
		return Decision{}, false
	}
	if n, _ := r.fits(at, e.item.State); n > 0 || e.item.Has(w) {
		return Decision{}, false
	}
	return r.decision(at, e.item.State, 0, Limited), true
}

// hint is the last state seen under k, or nil.
func (c *Cache) hint(k Key) State {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.find(k); e != nil {
		return e.item.State
	}
	return nil
}

// A view is what a cache knew of a key as an attempt began.
type view struct {
	began  time.Time
	doubts int
}

// look is taken before an attempt, for learn.
func (c *Cache) look(k Key, now time.Time) view {
	if c == nil {
		return view{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := view{began: now}
	if e := c.find(k); e != nil {
		v.doubts = e.doubts
	}
	return v
}

// learn keeps the item that an attempt brought. Of answers that crossed it
// keeps the one with more requests counted, which is the later one unless there
// was a release; no refusal relies on an attempt that a doubt crossed.
func (c *Cache) learn(k Key, item Item, v view, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.findOrAdd(k)
	doubted := e.doubts != v.doubts
	if (doubted || e.arrived.After(v.began)) && e.item.size() > item.size() {
		return
	}
	e.item, e.asked, e.arrived = item, v.began, now
	if doubted {
		e.asked = time.Time{}
	}
	e.alone = slices.DeleteFunc(e.alone, item.Has)
	e.rebase()
}

// doubt stops refusals from the state under k, and from any that an attempt
// under way will bring: the store was asked to make room.
func (c *Cache) doubt(k Key) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.findOrAdd(k)
	e.doubts++
	e.asked = time.Time{}
}

// forget is for a key whose item the store has deleted.
func (c *Cache) forget(k Key) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.find(k); e != nil {
		e.item, e.alone, e.here = Item{}, nil, nil
	}
}

// Update implements [Store] on what was seen and admitted here.
func (c *Cache) Update(_ context.Context, w Write) (Item, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.findOrAdd(w.Key)
	item, done := e.current().Write(w)
	if done {
		e.admit(w, item)
	}
	return item, done, nil
}

// Read implements [Store].
func (c *Cache) Read(_ context.Context, k Key) (Item, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.find(k); e != nil {
		return e.current(), nil
	}
	return Item{}, nil
}

// Delete implements [Store].
func (c *Cache) Delete(_ context.Context, k Key) error {
	c.forget(k)
	return nil
}

// current is the item as this instance must take it to be while the store is
// away: as last seen, and what it admitted since.
func (e *entry) current() Item {
	if e.here != nil {
		return *e.here
	}
	return e.item
}

// admit counts w, after which current is item.
func (e *entry) admit(w Write, item Item) {
	e.here = &item
	e.alone = append(e.alone, w)
	if e.key.Window == 0 { // by its id it can be found for so long
		e.alone = slices.DeleteFunc(e.alone, func(old Write) bool { return old.Now < w.Now-2*generation })
	}
}

// rebase counts what was admitted here on top of what the store has shown.
func (e *entry) rebase() {
	e.here = nil
	for _, w := range e.alone {
		if item := e.current(); e.key.Window != 0 || w.Update.Holds(item.State) {
			item = item.perform(w)
			e.here = &item
		}
	}
}

func (c *Cache) find(k Key) *entry {
	el, ok := c.byKey[k]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(el)
	return el.Value.(*entry)
}

func (c *Cache) findOrAdd(k Key) *entry {
	if e := c.find(k); e != nil {
		return e
	}
	e := &entry{key: k}
	c.byKey[k] = c.recent.PushFront(e)
	if c.recent.Len() > c.size {
		oldest := c.recent.Back()
		c.recent.Remove(oldest)
		delete(c.byKey, oldest.Value.(*entry).key)
	}
	return e
}
