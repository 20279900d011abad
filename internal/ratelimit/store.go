package ratelimit

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
)

// A Store keeps items and changes one at a time. It never reads a clock.
// Package storetest holds a store to each sentence here.
type Store interface {
	// Update performs w in one atomic step: whole where its guard holds and its
	// id allows it, else not at all. It returns the item as it stands then, and
	// whether w was performed. An item that does not exist is as one that is
	// empty.
	Update(ctx context.Context, w Write) (Item, bool, error)

	// Read returns the item under k, with every write that was answered before.
	// An item that does not exist is the zero Item.
	Read(ctx context.Context, k Key) (Item, error)

	// Delete removes the item under k, its ids included. Where there is none it
	// does nothing.
	Delete(ctx context.Context, k Key) error
}

// A Key names an item.
type Key struct {
	UserID   string
	Activity string
	Window   int64 // the window that the item counts: floor(now / window)
}

// A Write is an update of one item in the name of one request.
type Write struct {
	Key     Key
	Update  Update
	ID      ID    // the request
	Release bool  // the item must hold ID, and gives it up; otherwise it must not, and keeps it
	Now     int64 // Unix milliseconds: an item first written now was created now
	Expires int64 // Unix seconds: from then on the item can no longer matter; a release leaves it as it is
}

// An Item is what a store holds under a key.
type Item struct {
	State State
	IDs   []ID // the requests counted in it
}

// Has says whether the request was counted in the item.
func (i Item) Has(id ID) bool { return slices.Contains(i.IDs, id) }

// Write returns the item after w and true, or the item itself and false where
// w's id or guard forbids it. What it returns shares no memory that a later
// Write changes.
func (i Item) Write(w Write) (Item, bool) {
	if i.Has(w.ID) != w.Release || !w.Update.Holds(i.State) {
		return i, false
	}
	return i.perform(w), true
}

// perform is Write without its conditions.
func (i Item) perform(w Write) Item {
	after := Item{State: w.Update.Apply(i.State)}
	if w.Release {
		after.IDs = slices.DeleteFunc(slices.Clone(i.IDs), func(id ID) bool { return id == w.ID })
	} else {
		after.IDs = append(slices.Clip(i.IDs), w.ID)
	}
	return after
}

// An ID is a request's id as an item keeps it: the first 8 bytes of its
// SHA-256. Within one item's few ids two that are alike by chance are one in
// 10^15, and alike by intent costs 2^32 tries and gains one action.
type ID [8]byte

// NewID hashes a request's id.
func NewID(requestID string) ID {
	sum := sha256.Sum256([]byte(requestID))
	return ID(sum[:8])
}

// A StoreError says what is known of a request that brought no decision.
type StoreError struct {
	Failure Failure
	What    string // a sentence for callers: no key, address or user id in it
	Err     error  // the cause, for the log
}

func (e *StoreError) Error() string { return e.What + ": " + e.Err.Error() }
func (e *StoreError) Unwrap() error { return e.Err }

// Failure is the class of a StoreError.
type Failure uint8

// The classes.
const (
	Unknown   Failure = iota // it may have been performed: no answer came, or none that can be read
	Throttled                // not performed, and worth another try
	Rejected                 // not performed, and no use trying again: access, credentials, no such table
)

// asStoreError makes any error of a store a StoreError: what isn't known to be
// harmless is of unknown outcome. Nil stays nil.
func asStoreError(err error) *StoreError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e
	}
	return &StoreError{Failure: Unknown, What: tooLate, Err: err}
}

const tooLate = "the table did not answer in time"
