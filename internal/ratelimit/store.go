package ratelimit

import (
	"context"
	"errors"

	"github.com/cric-talk/guards/internal/policy"
)

// A Store keeps items and changes one item at a time. It never reads a clock
// and never retries. Package storetest tests each sentence of this interface.
type Store interface {
	// Update performs w in one atomic step. Either all of w happens, if its
	// guard and its ids allow it, or nothing does. It returns the item after that
	// step, and whether w was performed. A missing item is like an empty one.
	Update(ctx context.Context, w Write) (Item, bool, error)

	// Read returns the item under k, including every write that was answered
	// before. An item that does not exist is the zero Item.
	Read(ctx context.Context, k Key) (Item, error)

	// Delete removes the item under k with its ids. If there is no item, Delete
	// returns no error.
	Delete(ctx context.Context, k Key) error
}

// A Write is an update of one item on behalf of one request.
type Write struct {
	Key    Key
	Update policy.Update

	// ID is the request's id. If the item has it already, the store refuses the
	// write. Otherwise the item keeps it. The zero ID is no id.
	ID      ID
	Note    int64 // kept with ID, so that a repeat of the request can read it; 0: no note
	First   int64 // a time that is kept with ID, too, see Element; 0: none
	Last    int64 // another one, or the same
	KeepAll bool  // the item keeps its ids as long as it lives, and not only for 21 to 28 s
	Hold    bool  // the item keeps the id for 15 to 20 minutes, and not only for 21 to 28 s

	OtherID ID // if the item has it, the store refuses the write, too; the zero ID: none

	Renewed bool // the id can have moved, by a renewal or as a late job, and is then kept up to two generations ahead

	// Drop is an id to remove. If the item does not have it, with its note, the store
	// refuses the write. With Renewed, an id without a note is not one that was renewed.
	// The zero Location: the write removes no id.
	Drop      Location
	GivesBack bool // the store refuses to remove an id that has been renewed or that another attempt relies on

	// RelyOn is an id that gets the note ReliedOn. If the item does not have it, the store
	// refuses the write. Such a write has no ID. The zero Location: none.
	RelyOn Location

	Now     int64 // Unix milliseconds: the creation time of a new item; it also selects the set for the id
	KeepOld bool  // the write removes no old ids, because Now is ahead of this process's clock, or more than 5 s behind it
	Expires int64 // Unix seconds: when the item stops mattering; 0: the item keeps its own
}

// A StoreError means that a request to the store brought no usable answer.
type StoreError struct {
	Failure Failure
	What    string // a sentence for callers, without a key, an address or a user id
	Attr    string // Unreadable: the attribute, if it is known
	Err     error  // the cause, for the log
}

// Error implements error.
func (e *StoreError) Error() string {
	if e.Err == nil {
		return e.What
	}
	return e.What + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// A Failure is the class of a StoreError. It decides whether the limiter may
// send the request again.
type Failure uint8

// The classes.
const (
	// Unknown means that the request may have been performed. No answer came,
	// or the answer could not be read.
	Unknown Failure = iota

	// NotApplied means that the request was not performed and another attempt
	// may succeed, as after throttling or a conflict between replicas.
	NotApplied

	// Misconfigured means that the request was not performed, and none will be
	// until somebody mends the setup: access is denied, or there is no table.
	Misconfigured

	// Invalid means that the store can't perform this request, however often it
	// is sent. That says nothing about other requests.
	Invalid

	// Unreadable means that an attribute of the item has the wrong type.
	Unreadable
)

// asStoreError converts any error of a store to a StoreError. If err has
// another type, the outcome is Unknown. Nil stays nil.
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
