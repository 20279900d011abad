package lambdafn

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/lambda"
)

// An errorFilter keeps the errors that a handler returns out of the log.
//
// When a handler returns an error, aws-lambda-go sends it to the caller. It
// also prints the same text with package log, as the next line after the
// handler returns. No option turns that off. The text may repeat what the
// caller sent, such as a user id in the wrong field. The handlers log each
// error themselves, without such values, so nothing is lost.
//
// The filter does not look at the text. It drops one line for each error that
// the handler returned. It writes everything else, such as a panic, which is
// not a returned error, and other messages of aws-lambda-go.
//
// This relies on one invocation at a time in each process, which is how Lambda
// runs a function.
type errorFilter struct {
	lambda.Handler
	log  io.Writer
	drop atomic.Int64 // lines still to drop
}

// Invoke implements lambda.Handler.
func (f *errorFilter) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	answer, err := f.Handler.Invoke(ctx, payload)
	if err != nil {
		f.drop.Add(1)
	}
	return answer, err
}

// Write implements io.Writer for package log, which calls it once for each
// line.
func (f *errorFilter) Write(line []byte) (int, error) {
	if f.drop.Load() > 0 {
		f.drop.Add(-1)
		return len(line), nil
	}
	return f.log.Write(line)
}
