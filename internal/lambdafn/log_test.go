package lambdafn

import (
	"bytes"
	"context"
	"errors"
	"log"
	"testing"
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
