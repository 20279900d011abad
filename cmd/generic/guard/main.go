// Guard is a Lambda function that serves one guard of a page of limits. GUARD_NAME names the guard,
// and GUARDS_PAGE the page, unless it is /var/task/limits.json or /opt/guards/limits.json. It is the
// same program for every project.
package main

import (
	_ "time/tzdata" // the zones' rules, because Lambda has none

	"github.com/cric-talk/guards/internal/lambdafn"
)

func main() { lambdafn.GuardOfPage() }
