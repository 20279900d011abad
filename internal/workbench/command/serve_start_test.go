package command

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	app "github.com/cric-talk/guards/limits"
)

func TestServeReportsWhyItCannotStart(t *testing.T) {
	credentials(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // otherwise a serve that does start never ends
	defer stop()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	missing := []string{"--store", "dynamodb", "--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", "no-such-table"}
	for message, tt := range map[string]struct {
		status int
		args   []string
	}{
		"address already in use":                             {wrongUse, []string{"--addr", taken.Addr().String()}},
		"guards: http://127.0.0.1:1 can't be reached: ":      {unreachable, []string{"--store", "dynamodb", "--region", "r", "--endpoint", "http://127.0.0.1:1"}},
		"guards: the table no-such-table does not exist at ": {unreachable, missing},
	} {
		var log stream
		if status := run(ctx, append([]string{"serve"}, tt.args...), session{page: app.All, out: io.Discard, err: &log, now: atPinned}); status != tt.status || !strings.Contains(log.String(), message) {
			t.Errorf("guards serve %v: status %d, %s, want %d and %s", tt.args, status, &log, tt.status, message)
		}
	}
}
