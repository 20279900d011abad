package lambdafn

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

type handler func() ([]byte, error)

func (h handler) Invoke(context.Context, []byte) ([]byte, error) { return h() }

// loop does what aws-lambda-go does with a handler, once.
func loop(ctx context.Context, logger *log.Logger, f *errorFilter) {
	defer func() {
		if p := recover(); p != nil {
			logger.Printf("panic: %v", p)
		}
	}()
	if _, err := f.Invoke(ctx, nil); err != nil {
		logger.Printf("%v", err)
	}
}

func TestErrorsStayOutOfTheLog(t *testing.T) {
	var lines bytes.Buffer
	outcome := func() ([]byte, error) { return nil, nil }
	f := &errorFilter{Handler: handler(func() ([]byte, error) { return outcome() }), log: &lines}
	logger := log.New(f, "", 0)
	logger.Print("start")
	loop(t.Context(), logger, f)
	outcome = func() ([]byte, error) { return nil, errors.New("activity is \"canary\"\nand more") }
	loop(t.Context(), logger, f)
	loop(t.Context(), logger, f)
	logger.Print("between")
	outcome = func() ([]byte, error) { panic("broken") }
	loop(t.Context(), logger, f)
	if got, want := lines.String(), "start\nbetween\npanic: broken\n"; got != want {
		t.Errorf("the log is %q, want %q", got, want)
	}
}

// Each line of an invocation has the attributes of Powertools. Only the first
// invocation is a cold start, and other lines have no such attributes.
func TestAttributesOfPowertools(t *testing.T) {
	var lines bytes.Buffer
	logger := slog.New(newNamed(slog.NewJSONHandler(&lines, nil)))
	invocation := func(id, trace string) context.Context {
		ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: id})
		return context.WithValue(ctx, "x-amzn-trace-id", trace) //nolint:staticcheck // aws-lambda-go's own key
	}
	for _, step := range []struct {
		ctx  context.Context
		want string
	}{
		{t.Context(), `"service":"s"}`},
		{invocation("first", "trace"), `"service":"s","cold_start":true,"xray_trace_id":"trace"}`},
		{invocation("first", ""), `"service":"s","cold_start":true}`},
		{invocation("second", "other"), `"service":"s","cold_start":false,"xray_trace_id":"other"}`},
		{t.Context(), `"service":"s"}`},
	} {
		lines.Reset()
		logger.With("service", "s").InfoContext(step.ctx, "line") // a new logger knows the first invocation too
		if got := strings.TrimSpace(lines.String()); !strings.HasSuffix(got, step.want) {
			t.Errorf("the line is %s, want %s at its end", got, step.want)
		}
	}
}
