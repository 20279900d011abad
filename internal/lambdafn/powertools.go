package lambdafn

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// named adds to each line of an invocation what Powertools' loggers have beside
// aws-lambda-go's own, by their names: cold_start, and xray_trace_id where there
// is one.
type named struct {
	slog.Handler
	first *atomic.Pointer[string] // the request id of the instance's first invocation that logged
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
