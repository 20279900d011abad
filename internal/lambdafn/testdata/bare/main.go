// Bare is a function that does nothing but start: what a guard's own start is
// measured against.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context) error { return nil })
}
