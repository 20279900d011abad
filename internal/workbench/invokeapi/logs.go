package invokeapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// logKey is the context key for the log of an invocation.
type logKey struct{}

// An invocationLog collects what one invocation logs.
type invocationLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// maxTail is the number of bytes that Lambda returns from the end of a log.
const maxTail = 4 << 10

// attach returns a context with a new log for an invocation.
func attach(ctx context.Context) (context.Context, *invocationLog) {
	l := new(invocationLog)
	return context.WithValue(ctx, logKey{}, l), l
}

// Write implements io.Writer.
func (l *invocationLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// tail returns the end of the log, including the START, END and REPORT lines
// that Lambda adds.
func (l *invocationLog) tail(ctx context.Context, took time.Duration) []byte {
	var id string
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		id = lc.AwsRequestID
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ms := float64(took.Microseconds()) / 1000
	all := fmt.Appendf(nil, "START RequestId: %s Version: $LATEST\n%sEND RequestId: %s\nREPORT RequestId: %s\tDuration: %.2f ms\n",
		id, l.buf.Bytes(), id, id, ms)
	return all[max(0, len(all)-maxTail):]
}

// LogHandler returns the handler for the functions' loggers. It collects the
// log of each invocation, which callers get with X-Amz-Log-Type: Tail.
func LogHandler() slog.Handler { return handler{} }

// handler writes a record to the log of the invocation in the record's context.
// with holds the calls of WithAttrs and WithGroup, in order.
type handler struct {
	with []func(slog.Handler) slog.Handler
}

func (handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	l, ok := ctx.Value(logKey{}).(*invocationLog)
	if !ok {
		return nil
	}
	var to slog.Handler = slog.NewJSONHandler(l, nil)
	for _, with := range h.with {
		to = with(to)
	}
	return to.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h handler) WithGroup(name string) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

// and returns a copy of h with one more call.
func (h handler) and(with func(slog.Handler) slog.Handler) handler {
	return handler{append(slices.Clip(h.with), with)}
}
