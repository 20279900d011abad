package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
)

// post asks the guard by its Function URL.
func (g *Guards) post(ctx context.Context, c *call) (Decision, error) {
	request, err := c.sign(ctx)
	if err != nil {
		return Decision{}, err
	}
	response, err := g.sender.Do(request)
	if err != nil {
		return Decision{}, c.unreachable(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if is[*http.MaxBytesError](err) && response.StatusCode >= 300 {
		body, err = nil, nil // the status is enough
	}
	if err != nil {
		return Decision{}, c.unreadable(ctx, err)
	}
	d, err := c.readResponse(response, body)
	d.Date, _ = http.ParseTime(response.Header.Get("Date")) // the zero time if there is none
	return d, err
}

// sign returns the request, signed with the call's credentials.
func (c *call) sign(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.payload))
	if err != nil {
		return nil, c.notInvoked(err, err.Error())
	}
	request.Header.Set("Content-Type", "application/json")
	if c.keys == nil {
		return request, nil
	}
	region := c.region
	if match := ofURL.FindStringSubmatch(request.URL.Host); match != nil { // the URL may be in another one than the app
		region = match[1]
	}
	sum := sha256.Sum256(c.payload)
	err = v4.NewSigner().SignHTTP(ctx, *c.keys, request, hex.EncodeToString(sum[:]), "lambda", region, time.Now())
	if err != nil {
		return nil, c.notInvoked(err, err.Error())
	}
	return request, nil
}

// ofURL finds the region in the host of a Function URL.
var ofURL = regexp.MustCompile(`\.lambda-url\.([a-z0-9-]+)\.on\.aws$`)

// readResponse reads a Function URL's response.
func (c *call) readResponse(response *http.Response, body []byte) (Decision, error) {
	status := response.StatusCode
	if status == http.StatusOK {
		return c.readAnswer(body)
	}
	var problem struct {
		Allowed   *bool  `json:"allowed"`
		ErrorType string `json:"errorType"`
		Detail    string `json:"detail"`
		Message   string `json:"message"` // of Lambda itself
	}
	_ = json.Unmarshal(body, &problem) // a body of another form has no such fields
	switch {
	case status == http.StatusTooManyRequests && problem.Allowed != nil:
		return c.readAnswer(body)
	case status == http.StatusBadRequest && problem.ErrorType == "ValidationError":
		return Decision{}, c.validation(first(maxText, problem.Detail)) // a guard never shows an id
	case status == http.StatusServiceUnavailable && problem.ErrorType == "Unavailable":
		return Decision{}, c.unavailable(c.foreign(problem.Detail))
	case status >= 200 && status < 300:
		return Decision{}, c.noAnswer(string(body))
	}
	code, _, _ := strings.Cut(response.Header.Get("X-Amzn-Errortype"), ":")
	if code == "" {
		code = statusCode(status)
	}
	return Decision{}, c.refused(refusal{status, code, problem.Message}, nil)
}

// invoke asks the guard by Lambda's Invoke API.
func (g *Guards) invoke(ctx context.Context, c *call) (Decision, error) {
	in := &lambda.InvokeInput{FunctionName: &c.function, Payload: c.payload}
	out, err := g.client.Invoke(ctx, in, func(o *lambda.Options) {
		o.Retryer = aws.NopRetryer{}
		if g.sdk != nil {
			o.HTTPClient = g.sender
		}
		if c.keys != nil { // the SDK need not ask their source again
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return *c.keys, nil })
		}
	})
	if err != nil {
		return Decision{}, c.refusedByLambda(ctx, err)
	}
	if out.FunctionError != nil {
		return c.readFailure(out.Payload, *out.FunctionError)
	}
	d, err := c.readAnswer(out.Payload)
	d.Date, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
	return d, err
}

// refusedByLambda returns what an error of the Invoke API means.
func (c *call) refusedByLambda(ctx context.Context, err error) error {
	status := 0
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		status = response.HTTPStatusCode()
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case !ok && status == 0:
		return c.unreachable(ctx, err)
	case !ok && status < 300: // a success whose body could not be read
		return c.unreadable(ctx, err)
	case !ok:
		api = &smithy.GenericAPIError{Code: statusCode(status)}
	}
	return c.refused(refusal{status, api.ErrorCode(), api.ErrorMessage()}, err)
}

// credentials returns the credentials that sign the requests of a call, or nil
// if the app chose to sign nothing. Their source may take the whole time of the
// call.
//
// If the source never gave any credentials, that is a mistake: on a machine
// without a role, it never will. If the client had credentials before, it is an
// outage.
func (g *Guards) credentials(ctx context.Context, c *call) (*aws.Credentials, error) {
	if g.sdk == nil || g.sdk.Credentials == nil {
		return nil, nil
	}
	ctx, w := g.watch(ctx, c, g.room(ctx, c))
	defer w.stop()
	keys, err := g.sdk.Credentials.Retrieve(ctx)
	if err == nil {
		g.hadKeys.Store(true)
		return &keys, nil
	}
	if g.hadKeys.Load() {
		return nil, c.outage("the AWS credentials could not be renewed"+c.whySource(ctx, err), err)
	}
	return nil, c.configuration(err, "No AWS credentials were found%s. Give the app a role, or set AWS_PROFILE, "+
		"or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.", c.whySource(ctx, err))
}

// whySource returns the kind of a source's error for a message, without the
// error's own text, which could contain a secret. It is empty if there is no
// source: the SDK then asks for the role of the EC2 instance.
func (c *call) whySource(ctx context.Context, err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() != "" {
		return ": their source failed (" + c.foreign(api.ErrorCode()) + ")"
	}
	if op, ok := errors.AsType[*smithy.OperationError](err); ok && op.ServiceID == "ec2imds" {
		return ""
	}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return ": their source did not answer in time"
	}
	kind := "error"
	for ; err != nil; err = errors.Unwrap(err) {
		if name := strings.TrimPrefix(fmt.Sprintf("%T", err), "*"); !strings.HasPrefix(name, "fmt.") && !strings.HasPrefix(name, "errors.") {
			kind = name
			break
		}
	}
	return ": their source failed (" + kind + ")"
}
