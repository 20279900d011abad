// Post_sdk asks a guard with AWS's SDK for Go, without the client. Run it with go run ./examples/without-client USER REQUEST_ID.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"regexp"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
)

type event struct {
	UserID    string `json:"userId"`
	Activity  string `json:"activity"`
	RequestID string `json:"requestId"`
}

type answer struct {
	Allowed  *bool
	Message  string
	WaitTime int64 // milliseconds

	ErrorType, ErrorMessage string // of a function error
}

var errOutage = errors.New("the guard did not answer")

func ask(ctx context.Context, guards *lambda.Client, guard string, e event) (a answer, err error) {
	payload, err := json.Marshal(e)
	if err != nil {
		return a, err
	}
	out, err := guards.Invoke(ctx, &lambda.InvokeInput{FunctionName: &guard, Payload: payload})
	if err != nil && isOutage(err) {
		return a, fmt.Errorf("%w: %w", errOutage, err)
	}
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(out.Payload, &a); err != nil {
		return a, fmt.Errorf("%s: %w", guard, err)
	}
	switch {
	case a.ErrorType == "Unavailable" || a.ErrorType == "Sandbox.Timedout":
		return a, fmt.Errorf("%w: %s: %s", errOutage, a.ErrorType, a.ErrorMessage)
	case out.FunctionError != nil:
		return a, fmt.Errorf("%s: %s: %s", guard, a.ErrorType, a.ErrorMessage)
	case a.Allowed == nil:
		return a, fmt.Errorf("%s is no guard", guard)
	}
	return a, nil
}

// lasting matches errors that have a status like an outage, but don't pass by themselves.
var lasting = regexp.MustCompile("^(EC2Access|Invalid|KMS)")

func isOutage(err error) bool {
	if known, ok := errors.AsType[smithy.APIError](err); ok && lasting.MatchString(known.ErrorCode()) {
		return false
	}
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.HTTPStatusCode() != 0 {
		return response.HTTPStatusCode() == 429 || response.HTTPStatusCode() >= 500
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return false
	}
	timeout, ok := errors.AsType[net.Error](err)
	_, broken := errors.AsType[*net.OpError](err)
	return ok && timeout.Timeout() || broken || errors.Is(err, io.EOF)
}

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(2*time.Second)), // each attempt
		config.WithRetryMaxAttempts(3))
	if err != nil {
		log.Fatal(err)
	}
	// If these are missing, an invocation could fail as in an outage.
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil || cfg.Region == "" {
		log.Fatalf("the region is %q, and the credentials: %v", cfg.Region, err)
	}
	a, err := ask(ctx, lambda.NewFromConfig(cfg), "posts-guard", event{os.Args[1], "create_post", os.Args[2]})
	switch {
	case errors.Is(err, errOutage):
		log.Print(err)
		fmt.Println("201 created") // go on without a limit
	case err != nil:
		log.Fatal(err)
	case !*a.Allowed:
		fmt.Printf("429 %s (wait %d ms)\n", a.Message, a.WaitTime)
	default:
		fmt.Println("201 created") // write the post here
	}
}
