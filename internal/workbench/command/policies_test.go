package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	app "github.com/cric-talk/guards/limits"
)

// source returns a file of the repository.
func source(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile("../../../" + name))(t))
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
// run the commands.
func TestPicturesAreUpToDate(t *testing.T) {
	checkPictures(t, "policies.md", "img/README.md")
	checkPictures(t, "replay.md", "replay.md")
}

// checkPictures runs the commands in the file drawnBy, which draw the pictures of a document.
func checkPictures(t *testing.T, document, drawnBy string) {
	t.Helper()
	text := source(t, "docs/"+document)
	commands := regexp.MustCompile("```sh\n((?:go run ./cmd/guards replay .* --plot .*\n)+)```").FindStringSubmatch(source(t, "docs/"+drawnBy))
	if commands == nil {
		t.Fatalf("docs/%s has no commands that draw", drawnBy)
	}
	var shown, drawn []string
	for _, picture := range regexp.MustCompile(`!\[[^\]]+\]\((img/[^)]+)\)`).FindAllStringSubmatch(text, -1) {
		shown = append(shown, picture[1])
	}
	for line := range strings.Lines(commands[1]) {
		name := regexp.MustCompile(`docs/img/\S+\.svg`).FindString(line)
		drawn = append(drawn, strings.TrimPrefix(name, "docs/"))
		svg := filepath.Join(t.TempDir(), "out.svg")
		args := strings.TrimPrefix(strings.TrimSpace(line), "go run ./cmd/guards ")
		status, _, log := command(t, app.All, strings.ReplaceAll(strings.Replace(args, name, svg, 1), " docs/", " ../../../docs/"))
		got, err := os.ReadFile(svg)
		if err != nil || status != done || log != "" {
			t.Fatalf("%s: status %d, %s, %v", line, status, log, err)
		}
		if string(got) != source(t, name) {
			t.Errorf("%s has changed. If you meant to change it, run\n%s", name, line)
		}
	}
	slices.Sort(shown)
	slices.Sort(drawn)
	testkit.Same(t, "pictures of docs/"+document, drawn, shown)
}

// The document shows answers and quotes figures from them.
func TestPoliciesDocumentShowsRealAnswers(t *testing.T) {
	document := source(t, "docs/policies.md")
	several := cricket.Posts
	several.Activities = []limits.Activity{{Name: "create_post", Limit: policy.Must("minute: 10/1m, day: 200/1d")}}
	pins, posts := asks(t, cricket.Pins, 12, 0), asks(t, several, 12, 18)
	var pinned, refused guard.Answer
	for range 93 {
		pinned = pins(0, "pin", 1)
	}
	for range 11 {
		refused = posts(0, "create_post", 1)
	}
	testkit.Contains(t, "docs/policies.md", document,
		"```json\n"+string(pinned.JSON())+"\n```",
		fmt.Sprintf("`12-hour pin count: %d/%d`", pinned.Decision.Used, pinned.Decision.Limit),
		"`"+cricket.Pins.Message+"`",
		"```json\n"+string(refused.JSON())+"\n```",
		"```json\n"+string(refusedLetters(t))+"\n```",
	)
}

// asks returns a func that asks a guard about u1. Its clock begins on 5 January 2026, and moves
// before each question.
func asks(t *testing.T, g limits.Guard, hour, second int) func(after time.Duration, activity string, count int64) guard.Answer {
	t.Helper()
	now, n := time.Date(2026, 1, 5, hour, 0, second, 0, time.UTC), 0
	h := guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return now }}}
	return func(after time.Duration, activity string, count int64) guard.Answer {
		now, n = now.Add(after), n+1
		return testkit.Must(h.Decide(t.Context(), guard.Request{UserID: "u1", Activity: activity, Op: guards.Check, Count: count, RequestID: "r" + strconv.Itoa(n)}))(t)
	}
}

// refusedLetters follows the example of groups, and returns the refusal in it.
func refusedLetters(t *testing.T) []byte {
	t.Helper()
	guards := testkit.Must(limits.Link([]guards.Guard{{Name: "notes-guard", Message: cricket.Comments.Message, Activities: []guards.Activity{
		{Name: "write_note", Limit: "writes: 100/1h", Group: "writing"},
		{Name: "send_letter", Limit: "letters: 10/1h, writes: 100/1h cost 2", Group: "writing"},
	}}}))(t)
	ask := asks(t, guards[0], 9, 0)
	answers := []guard.Answer{ask(0, "write_note", 95), ask(time.Minute, "send_letter", 1), ask(time.Minute, "send_letter", 2), ask(0, "write_note", 3)}
	for i, left := range []int64{5, 1, 1, 0} {
		if a := answers[i]; a.Allowed != (i != 2) || a.Decision.Remaining != left {
			t.Errorf("step %d: %s", i+1, a.JSON())
		}
	}
	return answers[2].JSON()
}
