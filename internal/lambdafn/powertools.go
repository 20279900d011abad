package lambdafn

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

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
