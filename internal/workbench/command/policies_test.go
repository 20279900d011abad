package command

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	app "github.com/cric-talk/guards/limits"
)

// policiesDocument returns docs/policies.md.
func policiesDocument(t *testing.T) string {
	t.Helper()
	return docs(t, "policies.md")
}

func docs(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replays runs the document's commands and calls see with the picture of each.
func replays(t *testing.T, commands string, see func(command, svg string)) {
	t.Helper()
	for command := range strings.Lines(commands) {
		args := shellWords(strings.TrimPrefix(command, "go run ./cmd/guards "))
		svg := ""
		for i, arg := range args {
			args[i] = strings.Replace(arg, "docs/", "../../../docs/", 1)
			if strings.HasSuffix(arg, ".svg") {
				svg = filepath.Join(t.TempDir(), "out.svg")
				args[i] = svg
			}
		}
		var out, log stream
		if status := run(t.Context(), args, session{guards: app.All, out: &out, err: &log}); status != done || log.String() != "" {
			t.Fatalf("%s: exit status %d: %s", command, status, &log)
		}
		see(command, svg)
	}
}

// shellWords splits a command line as a shell does, if it has no other quotes
// than "...".
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// The pictures in docs/img are exactly what the command draws. To redraw them,
// run the commands of the document.
func TestPicturesAreUpToDate(t *testing.T) {
	for _, name := range []string{"policies.md", "replay.md"} {
		t.Run(name, func(t *testing.T) { checkPictures(t, name) })
	}
}

func checkPictures(t *testing.T, document string) {
	t.Helper()
	text := docs(t, document)
	commands := regexp.MustCompile("```sh\n((?:go run ./cmd/guards replay .* --plot .*\n)+)```").FindStringSubmatch(text)
	if commands == nil {
		t.Fatalf("docs/%s has no commands that draw", document)
	}
	shown := regexp.MustCompile(`!\[[^\]]+\]\((img/[^)]+)\)`).FindAllStringSubmatch(text, -1)
	var drawn []string
	replays(t, commands[1], func(command, svg string) {
		name := regexp.MustCompile(`docs/img/\S+\.svg`).FindString(command)
		drawn = append(drawn, strings.TrimPrefix(name, "docs/"))
		got, err := os.ReadFile(svg)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("../../../" + name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has changed (%v). If you meant to change it, run\n%s", name, err, command)
		}
		for d := xml.NewDecoder(bytes.NewReader(want)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is not XML: %v", name, err)
			}
		}
	})
	for _, picture := range shown {
		if !slices.Contains(drawn, picture[1]) {
			t.Errorf("docs/%s shows %s, but none of its commands draws it", document, picture[1])
		}
	}
	if len(shown) != len(drawn) {
		t.Errorf("docs/%s shows %d pictures and draws %d", document, len(shown), len(drawn))
	}
}

// The document shows answers and quotes figures from them.
func TestPoliciesDocumentShowsRealAnswers(t *testing.T) {
	document := policiesDocument(t)
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	several := app.Posts
	several.Activities = []limits.Activity{{Name: "create_post", Limit: policy.Must("minute: 10/1m, day: 200/1d")}}
	ask := func(g limits.Guard, times int) (a guard.Answer) {
		h := guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return now }}}
		for i := range times {
			var err error
			a, err = h.Decide(t.Context(), guard.Request{
				UserID: "u1", Activity: g.Activities[0].Name, Op: guard.Check, Count: 1, RequestID: "r" + strconv.Itoa(i+1),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	pins := ask(app.Pins, 93)
	now = now.Add(18 * time.Second)
	refused := ask(several, 11)
	letters := refusedLetters(t)
	for _, words := range []string{
		"```json\n" + string(pins.AppendJSON(nil)) + "\n```",
		fmt.Sprintf("`12-hour pin count: %d/%d`", pins.Decision.Used, pins.Decision.Limit),
		"`" + app.Pins.Message + "`",
		"```json\n" + string(refused.AppendJSON(nil)) + "\n```",
		"```json\n" + string(letters.AppendJSON(nil)) + "\n```",
	} {
		if !strings.Contains(document, words) {
			t.Errorf("docs/policies.md does not show\n%s", words)
		}
	}
}

// refusedLetters follows the example of groups, and returns the refusal in it.
func refusedLetters(t *testing.T) (refused guard.Answer) {
	t.Helper()
	guards, err := limits.Guards{{Name: "notes-guard", Message: app.Comments.Message, Activities: []limits.Activity{
		{Name: "write_note", Limit: policy.Must("writes: 100/1h"), Group: "writing"},
		{Name: "send_letter", Limit: policy.Must("letters: 10/1h, writes: 100/1h cost 2"), Group: "writing"},
	}}}.Link()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	h := guard.Handler{Guard: guards[0], Limiter: &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return now }}}
	for i, step := range []struct {
		after              time.Duration
		activity           string
		count, left, limit int64 // left: -1 if it is refused
	}{
		{0, "write_note", 95, 5, 100},
		{time.Minute, "send_letter", 1, 1, 50},
		{time.Minute, "send_letter", 2, -1, 50},
		{0, "write_note", 3, 0, 100},
	} {
		now = now.Add(step.after)
		a, err := h.Decide(t.Context(), guard.Request{
			UserID: "u1", Activity: step.activity, Op: guard.Check, Count: step.count, RequestID: "r" + strconv.Itoa(i+1),
		})
		if err != nil {
			t.Fatal(err)
		}
		if !a.Allowed {
			refused = a
		}
		if a.Allowed != (step.left >= 0) || a.Allowed && a.Decision.Remaining != step.left || a.Decision.Limit != step.limit {
			t.Errorf("step %d: %s", i+1, a.AppendJSON(nil))
		}
	}
	return refused
}
