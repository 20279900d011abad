// Command probe is a Lambda function for tests. It does what its event tells it, such
// as fail or exit.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Do string `json:"do"`
}

type seen struct {
	Do        string   `json:"do"`
	RequestID string   `json:"requestId"`
	ARN       string   `json:"arn"`
	Trace     string   `json:"trace"`
	LeftMs    int64    `json:"leftMs"`
	Env       []string `json:"env"`
	Args      int      `json:"args"`
	Dir       string   `json:"dir"`
	Calls     int      `json:"calls"`
}

type probeError struct{ message string }

func (e probeError) Error() string { return e.message }

var calls int

func handle(ctx context.Context, e event) (seen, error) {
	calls++
	fmt.Println("stdout", e.Do)
	fmt.Fprintln(os.Stderr, "stderr", e.Do)
	switch e.Do {
	case "fail":
		return seen{}, probeError{"as asked"}
	case "panic":
		panic(errors.New("as asked"))
	case "exit":
		os.Exit(7)
	case "sleep":
		time.Sleep(time.Minute)
	}
	deadline, _ := ctx.Deadline()
	lc, _ := lambdacontext.FromContext(ctx)
	dir, err := os.Getwd()
	return seen{
		Do: e.Do, RequestID: lc.AwsRequestID, ARN: lc.InvokedFunctionArn, Trace: os.Getenv("_X_AMZN_TRACE_ID"),
		LeftMs: time.Until(deadline).Milliseconds(), Env: os.Environ(), Args: len(os.Args), Dir: dir, Calls: calls,
	}, err
}

func main() { lambda.Start(handle) }
