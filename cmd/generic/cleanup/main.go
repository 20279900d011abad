// Cleanup is the Lambda function cleanup of a page of limits, which it finds as the program guard does.
package main

import (
	_ "time/tzdata" // the zones' rules, because Lambda has none

	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/pagefile"
)

func main() { lambdafn.Cleanup(pagefile.OfProgram()) }
