// Jobs-guard is the program guard for the one guard with a DelayedQueue.
package main

import (
	_ "time/tzdata" // the zones' rules, because Lambda has none

	"github.com/cric-talk/guards/internal/lambdafn/jobs"
)

func main() { jobs.GuardOfPage() }
