// Bare is a function without work. A benchmark compares its start with the
// start of a guard.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context) error { return nil })
}
