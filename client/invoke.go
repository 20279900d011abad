package client

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
)

// invoke asks the guard by Lambda's Invoke API.
func (g *Guards) invoke(ctx context.Context, c *call) (Decision, error) {
	in := &lambda.InvokeInput{FunctionName: &c.function, Payload: c.payload}
	out, err := g.client.Invoke(ctx, in, func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return Decision{}, c.refusedByLambda(ctx, err)
	}
	if out.FunctionError != nil {
		return c.readFailure(out.Payload, *out.FunctionError)
	}
	return c.readAnswer(out.Payload)
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
	return c.refused(refusal{status, api.ErrorCode(), c.masked(api.ErrorMessage())}, err)
}

// checkCredentials returns an ErrConfiguration if there are no credentials. The
// SDK caches them, so this costs nothing. A source of credentials that does not
// answer is a mistake too and not an outage: on a machine without a role, it
// never will.
func (g *Guards) checkCredentials(ctx context.Context) error {
	if g.sdk == nil {
		return nil
	}
	credentials := g.sdk.Credentials
	if credentials == nil || aws.IsCredentialsProvider(credentials, aws.AnonymousCredentials{}) {
		return nil // the app chose to sign nothing
	}
	if _, err := credentials.Retrieve(ctx); err != nil {
		return errNoCredentials(err)
	}
	return nil
}
