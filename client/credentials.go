package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
)

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
