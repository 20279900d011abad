package command

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limits"
)

// --watch reads the table again and again. Ctrl-C ends it cleanly, and tells
// what was read.
func TestTopWatches(t *testing.T) {
	credentials(t)
	where := []string{"--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", dynamotest.Table(t)}
	ten := append([]string{"check", "create_post", "--user", "u1", "--count", "10", "--store", "dynamodb"}, where...)
	if status := run(t.Context(), ten, session{guards: limits.All, out: io.Discard, err: io.Discard, now: atPinned}); status != done {
		t.Fatalf("check: status %d", status)
	}
	for format, row := range map[string]string{"--json": `"users":[{"userId":"u1"`, "--json=false": "u1    create_post  10/10  42 s"} {
		var out, log stream
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, append([]string{"top", "--watch", "--every", "1s", format}, where...),
				session{guards: limits.All, in: strings.NewReader("y\n"), out: &out, err: &log, screen: format != "--json", now: atPinned})
		}()
		for end := time.Now().Add(time.Minute); strings.Count(out.String(), row) < 2 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		interrupt()
		if status := <-ended; status != interrupted || strings.Count(out.String(), row) < 2 {
			t.Errorf("%s: status %d, %s", format, status, &out)
		}
		question, rest, _ := strings.Cut(log.String(), " [y/N] ")
		if !strings.HasPrefix(question, "Read all of the table ") || !strings.HasSuffix(question, ", about 1 item for 2 read units, every 1 s?") ||
			!strings.HasPrefix(rest, "guards: stopped after the table was read ") || strings.Count(rest, "\n") != 1 {
			t.Errorf("%s: on standard error: %s", format, &log)
		}
		if strings.Contains(out.String(), clearScreen) != (format != "--json") {
			t.Errorf("%s: %q, want the screen cleared only for people", format, &out)
		}
	}
}

func TestTopCanBeDeclined(t *testing.T) {
	credentials(t)
	args := []string{"top", "--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", dynamotest.Table(t)}
	var log stream
	if status := run(t.Context(), args, session{guards: limits.All, in: strings.NewReader("n\n"), out: io.Discard, err: &log}); status != interrupted || !strings.HasSuffix(log.String(), "guards: nothing was changed\n") {
		t.Errorf("status %d, %s", status, &log)
	}
	watch := append([]string{"top", "--watch"}, args[1:]...)
	if _ = run(t.Context(), watch, session{guards: limits.All, in: strings.NewReader("n\n"), out: io.Discard, err: &log}); !strings.Contains(log.String(), ", every 10 s? [y/N] ") {
		t.Errorf("without --every: %s", &log)
	}
}
