package ratelimit

import (
	"context"
	"errors"
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
