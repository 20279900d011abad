// Package table works on the whole table of counted actions, as operators need
// it. It creates the table, deletes what has expired, shows or erases one user,
// and counts users and items.
//
// [DynamoDB] works on a DynamoDB table, and [Memory] on the embedded store. No
// decision waits for this package, so its requests may take minutes.
package table

import "time"

// A Sweep holds the options of a sweep or an erasure.
type Sweep struct {
	Now      int64       // Unix seconds; a sweep deletes what expired before it, an erasure ignores it
	Until    time.Time   // when to stop even if work is left; zero: no limit
	DryRun   bool        // count, but delete nothing
	Progress func(Swept) // if set, called with the work done so far, never twice at once; an erasure ignores it
}

// Over reports whether it is time to stop.
func (s Sweep) Over() bool { return !s.Until.IsZero() && !time.Now().Before(s.Until) }

// Swept is what a sweep or an erasure found and did.
type Swept struct {
	Scanned  int64 `json:"scanned"`  // items read
	Stale    int64 `json:"stale"`    // how many of them had expired; for an erasure, all of them
	Deleted  int64 `json:"deleted"`  // how many of them are known to be deleted
	Users    int64 `json:"users"`    // users who own the items that were read
	Finished bool  `json:"finished"` // whether everything was read and deleted in time
}
