package command

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	app "github.com/cric-talk/guards/limits"
)

// --watch reads the table again and again. Ctrl-C ends it cleanly, and tells
// what was read.
func TestTopWatches(t *testing.T) {
	p := ofApp(t)
	p.does("check create_post --user u1 --count 10 --store dynamodb")
	for format, row := range map[string]string{"--json": `"users":[{"userId":"u1"`, "--json=false": "u1    create_post  10/10  42 s"} {
		var out, log stream
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, append([]string{"top", "--watch", "--every", "1s", format}, p.where...),
				session{page: app.All, in: strings.NewReader("y\n"), out: &out, err: &log, screen: format != "--json", now: atPinned})
		}()
		until(t, format+": the table is not shown twice", func() bool { return strings.Count(out.String(), row) >= 2 })
		interrupt()
		if status := <-ended; status != interrupted {
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
	p := ofApp(t)
	for command, question := range map[string]string{"top": " read units? [y/N] guards: nothing was changed\n", "top --watch": ", every 10 s? [y/N] guards: nothing was changed\n"} {
		p.in = strings.NewReader("n\n")
		p.fails(command, interrupted, question)
	}
}

// The limit with the fewest actions left need not be the one that is used most. At
// 22:14:18, the user has sent 2 of 5 texts since 22:14:00, and 26 of 30 since 22:00.
func TestTopShowsTheLimitThatIsUsedMost(t *testing.T) {
	p := of(t, []guards.Guard{{Name: "sms-guard", Message: "m", Activities: []guards.Activity{{Name: "send_text", Limit: "minute: 5/1m, hour: 30/1h"}}}})
	for minute, texts := range []int{5, 5, 5, 5, 4, 2} {
		p.now = pinned.Add(time.Duration(minute-5) * time.Minute)
		p.does(fmt.Sprintf("check send_text --user u1 --count %d --store dynamodb", texts))
	}
	const head = "22:14:18 UTC: 1 at 80 % of a limit or more, among 1 item (0.5 read units), in the table\nUSER  ACTIVITY         USED   WAIT\n"
	p.prints("top --yes", head+"u1    send_text, hour  26/30        [#############...] 86 %\n")
	p.prints("top --yes --near 90", "22:14:18 UTC: 0 at 90 % of a limit or more, among 1 item (0.5 read units), in the table\n")
}
