package scaffold

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/limits"
)

// narrow are the tests that notice a missing part of an activity or a guard.
// They stand for make check, which would run this test too.
const narrow = "go test ./internal/endtoend/rules ./limits ./schema/... -run 'Guard|Limit|Function|Role|Template|Generated|Golden|Import' && " +
	"go test ./internal/workbench/command -run 'TestComplete|TestServeLogsHTTPErrors'"

// The commands and the code of docs/extending.md work in their order, in a copy
// of the repository.
func TestTheStepsOfExtendingWork(t *testing.T) {
	testkit.Projects.Need(t)
	text := testkit.Must(os.ReadFile(root + "/docs/extending.md"))(t)
	page := unused(string(text))
	dir := testkit.Copy(t)
	for _, part := range []string{"## Change the limits here", "## Add a policy"} {
		_, text, _ := strings.Cut(page, "\n"+part+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		commands := 0
		for _, b := range blocks(text) {
			if b.language == "go" {
				paste(t, dir, b.text)
				continue
			}
			commands++
			for line := range strings.Lines(b.text) {
				follow(t, dir, strings.TrimSpace(line))
			}
		}
		if commands == 0 {
			t.Errorf("docs/extending.md has no part %s with commands", part)
		}
	}
}

// unused returns the page with other names for guards and activities that the
// code already has, because somebody followed the page.
func unused(page string) string {
	for _, g := range limits.All {
		if g.Name == "photos-guard" {
			page = strings.ReplaceAll(page, g.Name, "other-"+g.Name)
		}
		for _, a := range g.Activities {
			if a.Name == "upload_photo" || a.Name == "share_post" {
				page = strings.ReplaceAll(page, a.Name, "other_"+a.Name)
			}
		}
	}
	return page
}

// follow runs a command of the page.
func follow(t *testing.T, dir, command string) {
	t.Helper()
	run, want := command, 0
	switch {
	case command == "make check":
		run = narrow
	case strings.HasPrefix(command, "go run ./cmd/guards check "):
		want = 1 // the last request is refused
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", run)
	cmd.Dir = dir
	servers := func(v string) bool { // what makes tests use servers, or fail without them
		return strings.HasPrefix(v, "CI=") || strings.HasPrefix(v, "DYNAMODB_ENDPOINT=") || strings.HasPrefix(v, "SQS_ENDPOINT=")
	}
	// So the copy shares the modules that other tests have compiled.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), servers), "GOFLAGS=-vet=off -buildvcs=false -ldflags=-w")
	out, err := cmd.CombinedOutput()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got, err = exit.ExitCode(), nil
	}
	if err != nil || got != want || want == 1 && !strings.Contains(string(out), "6  refused") {
		t.Fatalf("%s: exit status %d, %v, want %d:\n%s", command, got, err, want, out)
	}
}

// paste puts code of the page where its first line says.
func paste(t *testing.T, dir, code string) {
	t.Helper()
	head, code, _ := strings.Cut(code, "\n")
	name, place, _ := strings.Cut(strings.TrimPrefix(head, "// "), ", ")
	path := filepath.Join(dir, filepath.FromSlash(name))
	switch place {
	case "":
	case "at the end of kinds":
		before := testkit.Must(os.ReadFile(path))(t)
		const end = "\n}\n\n// Kinds returns"
		if strings.Count(string(before), end) != 1 {
			t.Fatalf("%s has no list of kinds that ends before Kinds", name)
		}
		code = strings.Replace(string(before), end, "\n"+code+end, 1)
	default:
		t.Fatalf("this test does not know the place %q", place)
	}
	testkit.OK(t, os.WriteFile(path, []byte(code), 0o600))
}

// A block is a piece of a page between fences.
type block struct{ language, text string }

var (
	fence  = regexp.MustCompile("(?s)\n( *)```(\\w+)\n(.*?)\n *```")
	indent = regexp.MustCompile(`(?m)^ {3}`)
)

// blocks returns the commands and the Go code of a text, without the indent of
// the list that they are in.
func blocks(text string) (all []block) {
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		if match[2] == "sh" || match[2] == "go" {
			all = append(all, block{match[2], indent.ReplaceAllString(match[3], "") + map[bool]string{true: "\n"}[match[2] == "go"]})
		}
	}
	return all
}
