package lambdafn

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// An errorFilter keeps the errors that a handler returns out of the log.
//
// aws-lambda-go sends such an error to the caller. It also prints the same text
// with package log, as the next line after the handler returns, and no option
// turns that off. The text may repeat what the caller sent, such as a user id in
// the wrong field. The handlers log each error themselves, without such values.
//
// The filter does not look at the text. It drops one line for each error that
// the handler returned. It writes everything else, such as a panic. This relies
// on one invocation at a time in each process, which is how Lambda runs a function.
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

// Write implements io.Writer for package log, which calls it once for each line.
func (f *errorFilter) Write(line []byte) (int, error) {
	if f.drop.Load() > 0 {
		f.drop.Add(-1)
		return len(line), nil
	}
	return f.log.Write(line)
}

// named adds two attributes to each log line of an invocation. AWS's Powertools
// loggers have them, but aws-lambda-go's does not: cold_start, and
// xray_trace_id if there is a trace.
type named struct {
	slog.Handler
	first *atomic.Pointer[string] // request id of the first invocation that logged in this instance
}

func newNamed(h slog.Handler) named { return named{h, new(atomic.Pointer[string])} }

// Handle implements slog.Handler.
func (n named) Handle(ctx context.Context, r slog.Record) error {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return n.Handler.Handle(ctx, r)
	}
	n.first.CompareAndSwap(nil, &lc.AwsRequestID)
	r.AddAttrs(slog.Bool("cold_start", *n.first.Load() == lc.AwsRequestID))
	if trace, ok := ctx.Value("x-amzn-trace-id").(string); ok && trace != "" {
		r.AddAttrs(slog.String("xray_trace_id", trace))
	}
	return n.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (n named) WithAttrs(attrs []slog.Attr) slog.Handler {
	return named{n.Handler.WithAttrs(attrs), n.first}
}

// WithGroup implements slog.Handler.
func (n named) WithGroup(name string) slog.Handler {
	return named{n.Handler.WithGroup(name), n.first}
}
