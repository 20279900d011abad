// Package function runs the Lambda functions of a project: its guards, and cleanup.
// Each function is a program whose main is one call.
package function

import (
	_ "time/tzdata" // the zones' rules, because Lambda has none

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/lambdafn"
)

// Start runs the guard with this name as a Lambda function. It never returns: if the
// function can't start, the process ends with status 1 and says why. Use Start of
// package function/jobs for a guard with a DelayedQueue.
func Start(all []guards.Guard, name string) { lambdafn.Guard(all, name, nil) }

// StartCleanup runs the function that deletes expired items. Like Start, it never
// returns.
func StartCleanup(all []guards.Guard) { lambdafn.Cleanup(all, nil) }
