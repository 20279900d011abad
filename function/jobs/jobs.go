// Package jobs runs the Lambda functions that have queues: a guard with a
// DelayedQueue, and delayed-jobs. It is apart from package function, so that no
// other function links the client of SQS.
package jobs

import (
	_ "time/tzdata" // the zones' rules, because Lambda has none

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/lambdafn/jobs"
)

// Start runs the guard with this name as a Lambda function that puts jobs on the
// delayed queue. It never returns: if the function can't start, the process ends with
// status 1 and says why.
func Start(all []guards.Guard, name string) { jobs.Guard(all, name, nil) }

// StartDelayedJobs runs the function that passes the jobs of the delayed queue on at
// their time. The one guard with a DelayedQueue puts them there. Like Start, it never
// returns.
func StartDelayedJobs(all []guards.Guard) { jobs.Delayed(all, nil) }
