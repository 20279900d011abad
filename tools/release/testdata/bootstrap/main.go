// Command bootstrap stands for each function in the tests of package release.
// The real functions would take half a minute to compile for Lambda's processor.
package main

import (
	"fmt"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

func main() { fmt.Println(lambdacontext.FunctionName) }
