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

	"golang.org/x/tools/txtar"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

const photos = "--guard photos-guard --activity upload_photo --limit 5/1m"

// A project is the folder of a project that guards init has made.
type project struct{ dir string }

// ours returns this repository, which is a project, too.
func ours(t *testing.T) project {
	t.Helper()
	return project{testkit.Must(testkit.Root())(t)}
}

// newProject makes a project that requires this repository.
func newProject(t *testing.T) project {
	t.Helper()
	p := project{filepath.Join(t.TempDir(), "my-guards")}
	out, status := ours(t).run(t, "go run ./cmd/guards init "+p.dir+" "+photos)
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
	// So the packages of this repository are compiled once, for its own tests, too. Nobody debugs these programs.
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false -ldflags=-w", "GOWORK=off")
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), exit.ExitCode()
	}
	testkit.OK(t, err)
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

// exists reports whether the project has been made.
func (p project) exists() bool {
	_, err := os.Stat(p.dir)
	return err == nil
}

func (p project) read(t *testing.T, file string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile(filepath.Join(p.dir, file)))(t))
}

func (p project) write(t *testing.T, file, text string) {
	t.Helper()
	testkit.OK(t, os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o600))
}

// go run ends with status 1 and a line about the status of the program.
func TestAProjectFindsItsMistakes(t *testing.T) {
	testkit.Projects.Need(t)
	t.Parallel()
	p := newProject(t)
	p.wants(t, 0, `functions/videos-guard/main.go`, "go run ./cmd/guards new videos-guard upload_video 2/1h --tier pro=9/1h")
	p.wants(t, 0, `activities/activities.ts`, "go run ./cmd/guards new --guard photos-guard delete_photo 'log 3/1d'")
	p.wants(t, 1, `4 +refused +3/3 used`, "go run ./cmd/guards check delete_photo --user u1 --times 4")
	p.wants(t, 0, `dist/cleanup/bootstrap\n.*dist/photos-guard/bootstrap\n.*dist/videos-guard/bootstrap`, "make build")
	p.wants(t, 0, `^$`, "gofmt -l .")
	p.wants(t, 0, `guards devel`, "go run ./cmd/guards version") // a checkout, so it has no version

	// A program that was built before a limit changed reports that.
	page := p.read(t, "limits/limits.go")
	p.wants(t, 0, `^FUNCTION`, "go build -o ../guards ./cmd/guards && ../guards limits")
	p.write(t, "limits/limits.go", strings.Replace(page, `"5/1m"`, `"50/1m"`, 1))
	p.wants(t, 0, `limits.go has other limits than this program: upload_photo has the limit 50/1m there and 5/1m here\n`, "cd limits && ../../guards limits")
	p.wants(t, 0, `^FUNCTION`, "go run ./cmd/guards limits")
	p.wants(t, 2, `this program has other limits than limits/limits.go: `, "../guards generate")
	p.wants(t, 2, `stale`, "make test")
	p.wants(t, 0, `the table of limits`, "make generate")
	p.wants(t, 0, `ok\s+my-guards/limits`, "make test")
	p.write(t, "limits/limits.go", page)
	p.wants(t, 0, `the table of limits`, "make generate")

	// The list as a whole is wrong, then a function, then a text.
	p.write(t, "limits/limits.go", strings.Replace(page, `"videos-guard"`, `"photos-guard"`, 1))
	const twice = `two guards have the name photos-guard: give each guard a name of its own`
	p.wants(t, 1, twice, "go run ./cmd/guards generate")
	p.wants(t, 2, twice, "make test")
	p.write(t, "limits/limits.go", strings.Replace(page, `"videos-guard"`, `"movies-guard"`, 1))
	p.wants(t, 0, `functions/movies-guard/main.go +new: the function\n(.*\n)*functions/videos-guard/main.go +removed: the function\n`, "go run ./cmd/guards generate")
	p.wants(t, 0, `dist/cleanup/bootstrap\n.*dist/movies-guard/bootstrap\n.*dist/photos-guard/bootstrap`, "make build")
	p.write(t, "limits/limits.go", strings.Replace(page, `"2/1h"`, `"2/1x"`, 1))
	const text = `videos-guard, activity "upload_video": limit is "2/1x": window is "x"`
	p.wants(t, 1, strings.Replace(text, `"x"`, `"1x"`, 1), "go run ./cmd/guards generate")

	// Several mistakes are told at once: by the command line, by the test and by a function that starts.
	p.write(t, "limits/limits.go", strings.NewReplacer(`"2/1h"`, `"2/1x"`, `"5/1m"`, `"bucket"`).Replace(page))
	const both = `photos-guard, activity "upload_photo": limit is "bucket": (.*\n)*.*videos-guard, activity "upload_video": limit is "2/1x": `
	p.wants(t, 1, both, "go run ./cmd/guards limits")
	p.wants(t, 1, both, "go test ./limits")
	p.wants(t, 1, both, "TABLE_NAME=t AWS_REGION=us-east-1 go run ./functions/cleanup")
	p.wants(t, 1, both, "TABLE_NAME=t AWS_REGION=us-east-1 go run ./functions/photos-guard")
}

// A project of the version before works as it is. Its limits are calls, and its test repeats
// them. generate adds a test that the limits are valid, and names what can go.
func TestAProjectOfTheVersionBeforeWorks(t *testing.T) {
	testkit.Projects.Need(t)
	t.Parallel()
	p := project{filepath.Join(t.TempDir(), "my")}
	ours(t).wants(t, 0, "", "go run ./cmd/guards init "+p.dir+" "+photos)
	for _, f := range testkit.Must(txtar.ParseFile("testdata/older.txtar"))(t).Files {
		p.write(t, f.Name, string(f.Data))
	}
	p.wants(t, 0, `^ok`, "go test ./limits")
	decides := func() {
		t.Helper()
		p.wants(t, 1, `11 +refused +10/10 used`, "go run ./cmd/guards check create_post --user u1 --subject room=r1 --times 11")
		p.wants(t, 1, `21 +refused +20/20 used`, "go run ./cmd/guards check create_post --user u1 --subject room=r1 --tier premium --times 21")
	}
	decides()
	p.wants(t, 0, `limits/limits_test.go +a test that the limits are valid\n(.*\n)*`+
		`.*limits/limits.go: write "posts: 10/60s, writes: 100/1h cost 5" in place of guards.Limit\("posts: 10/60s, writes: 100/1h cost 5"\); guards generate --shorten does\n`+
		`.*limits/limits_test.go: the list promised repeats each limit, so a change needs both files; it can go, and so can its test TestLimitsAreAsPromised\n`, "go run ./cmd/guards generate")
	p.wants(t, 0, `ok\s+my/limits`, "go test ./...")
	p.wants(t, 0, `limits/limits.go +the shorter form of limits\n`, "go run ./cmd/guards generate --shorten")
	p.wants(t, 0, `Limit: "posts: 10/60s, writes: 100/1h cost 5", Tiers: guards.Tiers\{"premium": "posts: 20/1m, writes: 200/1h cost 5"\}, Subjects: \[\]guards.Subject\{\{Name: "room", Limit: "minute: 600/1m"\}\}`, "cat limits/limits.go")
	p.wants(t, 1, `^$`, "grep guards.Limit limits/limits.go")
	p.wants(t, 0, `^$`, "gofmt -l .")
	p.wants(t, 0, `^ok`, "go test ./limits")
	decides()
}

// After go get of a newer version, guards generate carries over what an older generator wrote, and keeps what people wrote.
func TestAnOlderProjectIsCarriedOver(t *testing.T) {
	testkit.Projects.Need(t)
	t.Parallel()
	p := newProject(t)
	const own = "  OwnTopic:\n    Type: AWS::SNS::Topic\n"
	fresh := map[string]string{}
	for _, file := range []string{"template.yaml", "README.md", "activities/activities.ts", "activities/activities.py", "activities/activities.go", "activities/activities.json"} {
		text := p.read(t, file)
		old := regexp.MustCompile(`(?s)(begin generated: \w+[^\n]*\n).*?(\n[^\n]*end generated)`).ReplaceAllString(text, "${1}  Older: {}${2}")
		if strings.HasPrefix(file, "activities/") {
			old = strings.Replace(text, "upload_photo", "photo_upload", 1)
		}
		if file == "template.yaml" {
			old = strings.Replace(old, "  # end generated: resources\n", "  # end generated: resources\n"+own, 1)
			text = strings.Replace(text, "  # end generated: resources\n", "  # end generated: resources\n"+own, 1)
		}
		fresh[file] = text
		p.write(t, file, strings.Replace(old, "\n", "\n# By hand.\n", 1))
	}
	event, program := `{"userId": "u2", "activity": "upload_photo", "count": 2}`, "// By hand.\n"+p.read(t, "functions/photos-guard/main.go")
	p.write(t, "functions/photos-guard/event.json", event)
	p.write(t, "functions/photos-guard/main.go", program)
	p.wants(t, 0, "template.yaml +the functions", "go run ./cmd/guards generate")
	for file, text := range fresh {
		if !strings.HasPrefix(file, "activities/") { // these are generated as a whole
			text = strings.Replace(text, "\n", "\n# By hand.\n", 1)
		}
		testkit.Same(t, file, text, p.read(t, file))
	}
	if p.read(t, "functions/photos-guard/event.json") != event || p.read(t, "functions/photos-guard/main.go") != program {
		t.Error("a function's files are not as a person wrote them")
	}
	p.wants(t, 0, "nothing is stale", "make test")
}

// With the same limits, a project's functions are the same as this
// repository's. The programs that read the same page from JSON answer the same.
func TestTheSameLimitsGiveTheSameFunctions(t *testing.T) {
	testkit.Projects.Need(t)
	t.Parallel()
	p := newProject(t)
	ours := ours(t)
	p.write(t, "limits/limits.go", ours.read(t, "limits/limits.go"))
	p.wants(t, 0, `fetching modules with go mod tidy(.*\n)*.*functions/jobs-guard/main.go`, "rm -r functions limits/limits_test.go && go run ./cmd/guards generate")

	own := regexp.MustCompile(`(?s)  # make release adds the version.*?\n\n`) // this repository is an application, too
	skeleton := regexp.MustCompile(`(?s)^.*?\nMetadata:\n`)
	plain := func(text string) string {
		return skeleton.ReplaceAllString(own.ReplaceAllString(text, "\n"), "")
	}
	testkit.Same(t, "template.yaml", plain(ours.read(t, "template.yaml")), plain(p.read(t, "template.yaml")))
	for _, list := range []string{"go", "json", "py", "ts"} {
		if file := "activities/activities." + list; ours.read(t, file) != p.read(t, file) {
			t.Errorf("%s differs", file)
		}
	}
	for _, function := range []string{"posts-guard", "jobs-guard", "delayed-jobs", "cleanup"} {
		t.Run(function, func(t *testing.T) {
			testkit.Same(t, "packages", ours.packages(t, function), p.packages(t, function))
			here, there := lambdatest.Build(t, "./functions/"+function), p.build(t, function)
			if want, got := sizeOf(t, here), sizeOf(t, there); 100*max(got-want, want-got) > want {
				t.Errorf("the program has %d bytes, want those of this repository, %d, and at most 1 %% more or less", got, want)
			}
			if strings.HasSuffix(function, "-guard") {
				testkit.Retry(t, func(t testing.TB) { // a window can end between two answers
					t.Helper()
					sameAnswers(t, function, here, there)
					sameAnswers(t, function, here, lambdatest.Build(t, "./cmd/generic/"+map[string]string{"posts-guard": "guard", "jobs-guard": "jobs-guard"}[function]))
				})
			}
		})
	}
}

// packages lists what a function links. The project's own packages have the names of this repository's.
func (p project) packages(t *testing.T, function string) []string {
	t.Helper()
	out, status := p.run(t, "go list -tags=lambda.norpc,nethttpomithttp2 -deps ./functions/"+function)
	if status != 0 {
		t.Fatal(out)
	}
	list := strings.Fields(strings.ReplaceAll(out, "my-guards/", "github.com/cric-talk/guards/"))
	slices.Sort(list)
	return list
}

// build compiles a function of the project as package lambdatest compiles this repository's
// functions.
func (p project) build(t *testing.T, function string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), function)
	flags := strings.Join(lambdatest.Flags, "' '")
	p.wants(t, 0, "^$", "CGO_ENABLED=0 go build -o "+binary+" '"+flags+"' ./functions/"+function)
	return binary
}

func sizeOf(t *testing.T, file string) int64 {
	t.Helper()
	return testkit.Must(os.Stat(file))(t).Size()
}

// sameAnswers sends the golden events of a guard to both programs. Each has a table of its own. What depends on the time and on
// random ids is left out.
func sameAnswers(t testing.TB, guard, one, other string) {
	t.Helper()
	page := testkit.Must(filepath.Abs("../../pagefile/testdata/limits.json"))(t)
	var programs [2]*lambdatest.Instance
	for i, binary := range []string{one, other} {
		programs[i] = lambdatest.Start(t, binary, "TABLE_NAME="+dynamotest.Table(t), "AWS_ENDPOINT_URL_DYNAMODB="+dynamotest.Endpoint(t),
			"DECISION_TIMEOUT=5s",                    // so that a busy machine does not look like an outage
			"GUARD_NAME="+guard, "GUARDS_PAGE="+page) // for a program that reads its page
	}
	files := testkit.Must(filepath.Glob("../../../schema/golden/*.json"))(t)
	varies := regexp.MustCompile(`"(waitTime|resetAt|windowKey|at|requestId|readyAt|heldUntil)":("[^"]*"|\d+)`)
	sent := 0
	for _, file := range files {
		var golden struct {
			Guard  string            `json:"guard"`
			Limit  string            `json:"limit"`
			Before []json.RawMessage `json:"before"`
			Event  json.RawMessage   `json:"event"`
		}
		testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(file))(t), &golden))
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
