// Package table does operators' work on the table of counted actions: create
// it, sweep out what has expired, erase a user, show a user, and count its
// users.
//
// [DynamoDB] works on a DynamoDB table, and [Memory] on the embedded store. No
// decision waits for this package, so its requests may take minutes.
package table

import "time"

// A Sweep holds the options of a sweep or an erasure.
type Sweep struct {
	Now      int64       // Unix seconds; a sweep deletes what expired before it, an erasure ignores it
	Until    time.Time   // when to stop in good order; zero means when all is done
	DryRun   bool        // count, but delete nothing
	Progress func(Swept) // if set, called now and then with the work done so far, never twice at once
}

// Over reports whether it is time to stop.
func (s Sweep) Over() bool { return !s.Until.IsZero() && !time.Now().Before(s.Until) }

// Swept is what a sweep or an erasure found and did.
type Swept struct {
	Scanned  int64 // items read
	Stale    int64 // how many of them had expired; for an erasure, all of them
	Deleted  int64 // how many of them are known to be deleted
	Users    int64 // users who own the items that were read
	Finished bool  // whether everything was read and deleted in time
}
