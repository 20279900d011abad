package dynamotest_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Each row sends one update with a fault. It checks what the client sees and
// whether the table performed the update.
func TestEachFaultDoesWhatItsNameSays(t *testing.T) {
	t.Parallel()
	code := func(want string) func(error) bool {
		return func(err error) bool {
			var api smithy.APIError
			return errors.As(err, &api) && api.ErrorCode() == want
		}
	}
	is := func(want error) func(error) bool {
		return func(err error) bool { return errors.Is(err, want) }
	}
	unreadable := func(err error) bool {
		var d *smithy.DeserializationError
		return errors.As(err, &d)
	}
	type row struct {
		fault   dynamotest.Fault
		applied bool
		seen    func(error) bool
	}
	rows := []row{
		{dynamotest.Pass, true, func(err error) bool { return err == nil }},
		{dynamotest.Throttle, false, code("ProvisionedThroughputExceededException")},
		{dynamotest.ThrottlingException, false, code("ThrottlingException")},
		{dynamotest.RequestLimit, false, code("RequestLimitExceeded")},
		{dynamotest.LimitExceeded, false, code("LimitExceededException")},
		{dynamotest.ReplicaConflict, false, code("ReplicatedWriteConflictException")},
		{dynamotest.AccessDenied, false, code("AccessDeniedException")},
		{dynamotest.BadCredentials, false, code("UnrecognizedClientException")},
		{dynamotest.ExpiredCredentials, false, code("ExpiredTokenException")},
		{dynamotest.Refuse, false, is(io.EOF)},
		{dynamotest.ResetBefore, false, is(syscall.ECONNRESET)},
		{dynamotest.HangBefore, false, is(context.Canceled)},
		{dynamotest.Status500, false, code("InternalServerError")},
		{dynamotest.Status503, false, code("ServiceUnavailable")},
		{dynamotest.LoseResponse, true, is(io.EOF)},
		{dynamotest.Reset, true, is(syscall.ECONNRESET)},
		{dynamotest.HangAfter, true, is(context.Canceled)},
		{dynamotest.Status500After, true, code("InternalServerError")},
		{dynamotest.Status503After, true, code("ServiceUnavailable")},
		{dynamotest.Truncate, true, is(io.ErrUnexpectedEOF)},
		{dynamotest.Stall, true, is(context.Canceled)},
		{dynamotest.Garbage, true, unreadable},
		{dynamotest.BadChecksum, true, func(err error) bool { return err == nil }},
		{dynamotest.UnprocessedStatements, true, func(err error) bool { return err == nil }},
	}
	for _, fault := range dynamotest.Faults() {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.fault == fault }) {
			t.Errorf("the fault %q has no row", fault)
		}
	}
	for _, row := range rows {
		t.Run(string(row.fault), func(t *testing.T) {
			t.Parallel()
			c, proxy := newCounter(t), dynamotest.NewProxy(t)
			client := dynamotest.Client(t, proxy.URL())
			proxy.Fail(1, row.fault, "UpdateItem")
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			ended := make(chan error, 1)
			go func() { ended <- c.add(ctx, client) }()
			want := map[bool]string{true: "1", false: ""}[row.applied]
			if row.fault.Hangs() {
				until(t, "the write reaches the table", func() bool { return proxy.Counts()["UpdateItem"] == 1 && c.value(t) == want })
				time.Sleep(100 * time.Millisecond) // enough for an answer
				giveUp()
			}
			err := <-ended
			if !row.seen(err) {
				t.Errorf("the client saw %v", err)
			}
			if got := c.value(t); got != want || row.fault.Applied() != row.applied {
				t.Errorf("the count is %q, want %q; Applied returns %v", got, want, row.fault.Applied())
			}
			if err := c.add(t.Context(), client); err != nil {
				t.Errorf("the next request: %v", err)
			}
			if got := proxy.Counts()["UpdateItem"]; got != 2 {
				t.Errorf("%d requests, want 2: the client must not retry", got)
			}
		})
	}
}

func TestWriteContinuesWhenTheClientGivesUp(t *testing.T) {
	t.Parallel()
	c, proxy := newCounter(t), dynamotest.NewProxy(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	proxy.Before("UpdateItem", func() { cancel(); <-gone })
	err := c.add(ctx, dynamotest.Client(t, proxy.URL()))
	close(gone)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	until(t, "the write reaches the table", func() bool { return c.value(t) == "1" })
}

// until waits for an event.
func until(t *testing.T, event string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30s", event)
		}
	}
}
