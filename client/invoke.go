package client

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
)

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
