// Package projects_test makes projects of one's own with guards init, builds them, and
// compares them with this repository, which is a project too.
package projects_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

const photos = "--guard photos-guard --activity upload_photo --limit 5/1m"

// A project is the folder of a project that guards init has made.
type project struct{ dir string }

// newProject makes a project that requires this repository.
func newProject(t *testing.T) project {
	t.Helper()
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	p := project{filepath.Join(t.TempDir(), "my-guards")}
	here := project{root}
	out, status := here.run(t, "go run ./cmd/guards init "+p.dir+" "+photos)
	if want := "go run ./cmd/guards check upload_photo --user u1 --times 6"; status != 0 || !strings.Contains(out, want) {
		t.Fatalf("guards init: status %d, want 0 and a line with %s:\n%s", status, want, out)
	}
	return p
}

// run runs a command in the project, and returns what it prints and its status.
func (p project) run(t *testing.T, command string) (out string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = p.dir
	// The module cache has what this repository's tests need, so nothing is downloaded. With -trimpath, the build cache serves
	// every folder.
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath -buildvcs=false", "GOPROXY=off", "GONOSUMDB=*", "GOWORK=off")
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text), 0
}

// wants runs a command that must end with this status and print this.
func (p project) wants(t *testing.T, status int, pattern, command string) {
	t.Helper()
	out, got := p.run(t, command)
	if got != status || !regexp.MustCompile(pattern).MatchString(out) {
		t.Fatalf("%s: status %d, want %d, and a line like %s:\n%s", command, got, status, pattern, out)
	}
}

func (p project) read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (p project) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// go run ends with status 1 and a line about the status of the program.
func TestAProjectBuildsTestsAndRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.wants(t, 1, `6 +refused +5/5 used`, "go run ./cmd/guards check upload_photo --user u1 --times 6")
	p.wants(t, 0, `ok\s+my-guards/limits`, "make test")
	p.wants(t, 0, `functions/videos-guard/main.go`, "go run ./cmd/guards new videos-guard upload_video 2/1h --tier pro=9/1h")
	p.wants(t, 0, `activities/activities.ts`, "go run ./cmd/guards new --guard photos-guard delete_photo 'log 3/1d'")
	p.wants(t, 1, `4 +refused +3/3 used`, "go run ./cmd/guards check delete_photo --user u1 --times 4")
	p.wants(t, 0, `dist/cleanup/bootstrap\n.*dist/photos-guard/bootstrap\n.*dist/videos-guard/bootstrap`, "make build")
	p.wants(t, 0, `^$`, "gofmt -l .")
	p.wants(t, 0, `guards devel`, "go run ./cmd/guards version") // a checkout, so it has no version

	// A limit that changes by mistake is found by its test.
	page := p.read(t, "limits/limits.go")
	p.write(t, "limits/limits.go", strings.Replace(page, `"5/1m"`, `"50/1m"`, 1))
	p.wants(t, 2, `stale`, "make test")
	p.wants(t, 0, `the table of limits`, "make generate")
	p.wants(t, 2, `photos-guard, upload_photo: "5/1m"`, "make test")
	p.write(t, "limits/limits.go", page)
	p.wants(t, 0, `the table of limits`, "make generate")

	for _, tt := range []struct{ old, with, want string }{
		{`"videos-guard"`, `"photos-guard"`, `two guards have the name photos-guard: give each guard a name of its own`},
		{`"upload_video"`, `"upload_photo"`, `videos-guard, activity "upload_photo": photos-guard has an activity of this name; give each activity a name of its own`},
		{`"9/1h"`, `"9/1d"`, `videos-guard, activity "upload_video": tier "pro": window of "9/1d" is 1d, want 1h as in "2/1h"`},
		{`"videos-guard"`, `"movies-guard"`, `functions/videos-guard is the function of no guard in limits/limits.go: give a guard the Name "videos-guard", or delete the folder`},
		{`"2/1h"`, `"2/1x"`, `limit is "2/1x"`},
	} {
		p.write(t, "limits/limits.go", strings.Replace(page, tt.old, tt.with, 1))
		p.wants(t, 1, regexp.QuoteMeta(tt.want), "go run ./cmd/guards generate")
		p.wants(t, 2, regexp.QuoteMeta(tt.want), "make test")
	}
}

// With the same limits, a project's functions are those of this repository.
func TestTheSameLimitsGiveTheSameFunctions(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	ours := project{root}
	p.write(t, "limits/limits.go", ours.read(t, "limits/limits.go"))
	p.wants(t, 0, `functions/jobs-guard/main.go`, "rm -r functions limits/limits_test.go && go run ./cmd/guards generate")

	own := regexp.MustCompile(`(?s)  # make release adds the version.*?\n\n`) // this repository is an application, too
	skeleton := regexp.MustCompile(`(?s)^.*?\nMetadata:\n`)
	plain := func(text string) string {
		return skeleton.ReplaceAllString(own.ReplaceAllString(text, "\n"), "")
	}
	if diff := cmp.Diff(plain(ours.read(t, "template.yaml")), plain(p.read(t, "template.yaml"))); diff != "" {
		t.Errorf("template.yaml (-this repository +project):\n%s", diff)
	}
	for _, list := range []string{"go", "json", "py", "ts"} {
		if file := "activities/activities." + list; ours.read(t, file) != p.read(t, file) {
			t.Errorf("%s differs", file)
		}
	}
	for _, function := range []string{"posts-guard", "jobs-guard", "delayed-jobs", "cleanup"} {
		t.Run(function, func(t *testing.T) {
			const list = "go list -tags=lambda.norpc,nethttpomithttp2 -deps ./functions/"
			want, _ := ours.run(t, list+function)
			got, _ := p.run(t, list+function)
			if diff := cmp.Diff(want, strings.ReplaceAll(got, "my-guards/", "github.com/cric-talk/guards/")); sorted(want) != sorted(got) {
				t.Errorf("packages (-this repository +project):\n%s", diff)
			}
			theirs := p.build(t, function)
			size, want64 := sizeOf(t, theirs), sizeOf(t, lambdatest.Build(t, "./functions/"+function))
			if 100*max(size-want64, want64-size) > want64 {
				t.Errorf("the program has %d bytes, want those of this repository, %d, and 1 %% more or less", size, want64)
			}
			if strings.HasSuffix(function, "-guard") {
				sameAnswers(t, function, lambdatest.Build(t, "./functions/"+function), theirs)
			}
		})
	}
}

// sorted returns the packages of a list in their order, with the same names in both projects.
func sorted(list string) string {
	lines := strings.Split(strings.ReplaceAll(list, "my-guards/", "github.com/cric-talk/guards/"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// build compiles a function of the project as package lambdatest compiles those of this repository.
func (p project) build(t *testing.T, function string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), function)
	flags := strings.ReplaceAll(strings.Join(lambdatest.Flags, "' '"), "=-s -w", "=-s -w")
	p.wants(t, 0, "^$", "CGO_ENABLED=0 go build -o "+binary+" '"+flags+"' ./functions/"+function)
	return binary
}

func sizeOf(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// sameAnswers sends the golden events of a guard to both programs. Each has a table of its own. What depends on the time and on
// random ids is left out.
func sameAnswers(t *testing.T, guard, one, other string) {
	t.Helper()
	var programs [2]*lambdatest.Instance
	for i, binary := range []string{one, other} {
		programs[i] = lambdatest.Start(t, binary, "TABLE_NAME="+dynamotest.Table(t), "AWS_ENDPOINT_URL_DYNAMODB="+dynamotest.Endpoint(t),
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	}
	files, err := filepath.Glob("../../../schema/golden/*.json")
	if err != nil {
		t.Fatal(err)
	}
	varies := regexp.MustCompile(`"(waitTime|resetAt|windowKey|at|requestId|readyAt)":("[^"]*"|\d+)`)
	sent := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		var golden struct {
			Guard  string            `json:"guard"`
			Limit  string            `json:"limit"`
			Before []json.RawMessage `json:"before"`
			Event  json.RawMessage   `json:"event"`
		}
		if err == nil {
			err = json.Unmarshal(text, &golden)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		if golden.Guard != guard || golden.Limit != "" {
			continue
		}
		for _, event := range append(golden.Before, golden.Event) {
			sent++
			var answers [2]string
			for i, p := range programs {
				answers[i] = varies.ReplaceAllString(string(p.Invoke(t, string(event)).Payload), `"$1":0`)
			}
			if answers[0] != answers[1] {
				t.Errorf("%s, %s: the answers differ:\n%s\n%s", filepath.Base(file), event, answers[0], answers[1])
			}
		}
	}
	if sent < 3 {
		t.Errorf("%d golden events are for %s, want more", sent, guard)
	}
}
