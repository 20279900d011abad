package invokeapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// logKey is the context key for the *invocationLog of an invocation.
type logKey struct{}

// An invocationLog collects what one invocation logs.
type invocationLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// maxTail is the number of bytes that Lambda returns from the end of a log.
const maxTail = 4 << 10

// Write implements io.Writer.
func (l *invocationLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// tail returns the end of the log, with Lambda's START, END and REPORT lines.
func (l *invocationLog) tail(ctx context.Context, took time.Duration) []byte {
	function, _ := lambdacontext.FromContext(ctx) // see functionContext
	id := function.AwsRequestID
	l.mu.Lock()
	defer l.mu.Unlock()
	ms := float64(took.Microseconds()) / 1000
	all := fmt.Appendf(nil, "START RequestId: %s Version: $LATEST\n%sEND RequestId: %s\nREPORT RequestId: %s\tDuration: %.2f ms\n",
		id, l.buf.Bytes(), id, id, ms)
	return all[max(0, len(all)-maxTail):]
}

// LogHandler returns the handler for the functions' loggers. It collects the
// log of each invocation, which callers get with X-Amz-Log-Type: Tail.
func LogHandler() slog.Handler {
	to := new(target)
	return handler{slog.NewJSONHandler(to, nil), to}
}

// A handler writes a record to the log of the invocation in the record's context.
type handler struct {
	slog.Handler // writes to the target
	to           *target
}

// A target is the log that all handlers write to, one record at a time.
type target struct {
	mu sync.Mutex
	*invocationLog
}

func (handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(ctx context.Context, r slog.Record) (err error) {
	if l, ok := ctx.Value(logKey{}).(*invocationLog); ok {
		h.to.mu.Lock()
		defer h.to.mu.Unlock()
		h.to.invocationLog = l
		err = h.Handler.Handle(ctx, r)
	}
	return err
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.to}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.to}
}
