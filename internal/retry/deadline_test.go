package retry_test

import (
	"context"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/retry"
)

func TestBefore(t *testing.T) {
	end := time.Now().Add(time.Hour)
	lambda, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	ctx, cancel := Before(lambda, Margin)
	if got, _ := ctx.Deadline(); !got.Equal(end.Add(-100 * time.Millisecond)) {
		t.Errorf("the context ends at %v, want 100 ms before %v", got, end)
	}
	cancel()
	if ctx.Err() == nil || lambda.Err() != nil {
		t.Errorf("after cancel: %v and %v, want only the new context to end", ctx.Err(), lambda.Err())
	}
	ctx, cancel = Before(t.Context(), Margin)
	if end, ok := ctx.Deadline(); ok {
		t.Errorf("without a deadline, the context ends at %v", end)
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("cancel does not end the context")
	}
}
