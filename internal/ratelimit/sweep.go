package ratelimit

import "time"

// A Sweep looks through a whole store and deletes each item that has expired,
// and is still expired when the delete arrives.
type Sweep struct {
	Now      int64       // Unix seconds: what expired before goes
	Until    time.Time   // stop in good order then; zero: when all is done
	DryRun   bool        // delete nothing
	Progress func(Swept) // told what was done so far, now and then, one call at a time; nil: nobody is
}

// Over says whether it is time to stop.
func (s Sweep) Over() bool { return !s.Until.IsZero() && !time.Now().Before(s.Until) }

// Swept is what a sweep or an erasure found and did.
type Swept struct {
	Scanned  int64 // items looked at
	Stale    int64 // of them, how many are to go
	Deleted  int64 // of them, how many are known to have gone
	Users    int64 // whose items were looked at
	Finished bool  // everything was looked at
}
