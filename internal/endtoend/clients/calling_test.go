package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// A trial is one situation in which an example runs.
type trial struct {
	name   string
	before string   // fields of an event that is sent first, in addition to userId and activity
	user   string   // empty means a new user
	fault  fault    // what happens to requests on their way to the guard
	unset  []string // variables that the example's environment does not have
	times  int      // how often the example runs with the same requestId; 0 means once

	status         int    // wanted of the last run; failed means any but 0
	stdout, stderr string // wanted: the beginning of stdout; a pattern for stderr
	counted        int64  // wanted at the end
}

// failed stands for any exit status but 0.
const failed = -2

var trials = []trial{
	{name: "allowed", stdout: "201 created\n", counted: 1},
	{name: "refused", before: `,"count":10`, stdout: "429 ", counted: 10},
	{name: "a repeat with the same id", times: 2, stdout: "201 created\n", counted: 1},

	// An outage lets the user through, and the example logs it.
	{name: "a lost answer", fault: losesAnAnswer, stdout: "201 created\n", counted: 1},
	{name: "no server", fault: isAbsent, stdout: "201 created\n", stderr: "onnect"},
	{name: "broken connections", fault: breaks, stdout: "201 created\n", stderr: "onnect|hang up|EOF"},
	{name: "throttled", fault: throttles, stdout: "201 created\n", stderr: "Rate exceeded|TooManyRequests"},
	{name: "a guard without its table", fault: failing("Unavailable", "the table did not answer"), stdout: "201 created\n", stderr: "the table did not answer"},
	{name: "a guard that timed out", fault: failing("Sandbox.Timedout", "Task timed out"), stdout: "201 created\n", stderr: "timed out"},
	{name: "an error of Lambda", fault: fails, stdout: "201 created\n", stderr: "An internal error|ServiceException"},

	// A mistake lets nobody through.
	{name: "a mistake in the event", user: strings.Repeat("u", 129), status: 1, stderr: "userId"},
	{name: "an id that is JSON", user: `u1", "roles": ["admin"], "op": "check`, status: failed, stderr: "userId|needs JSON escapes"},
	{name: "no region", unset: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}, status: failed, stderr: "region"},
	{name: "no credentials", unset: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, status: failed, stderr: "redentials"},
	{name: "a wrong function name", fault: knowsAnotherName, status: failed, stderr: "unction"},
	{name: "no permission", fault: denies, status: failed, stderr: "nvoke"},
	{name: "a guard without its key", fault: hasNoKey, status: failed, stderr: "KMSDisabled"},
	{name: "a guard that crashed", fault: failing("Runtime.ExitError", "Runtime exited"), status: failed, stderr: "Runtime.ExitError"},
	{name: "another function", fault: isNoGuard, status: failed, stderr: "posts-guard|hello"},
}

// mails are further trials of the sample that sends mails. Each wants this pattern
// as the whole stdout.
var mails = map[string]trial{
	"a mail at 80 %":        {before: `,"count":7`, stdout: `^201 created\nmail to \w+: you have used 8 of your 10 posts\n$`},
	"no mail beyond 80 %":   {before: `,"count":8`, stdout: `^201 created\n$`},
	"a mail at 100 %":       {before: `,"count":9`, stdout: `^201 created\nmail to \w+: you have used 10 of your 10 posts\n$`},
	"no mail for a refusal": {before: `,"count":10`, stdout: `^429 .*\n$`},
	"no mail for a repeat":  {before: `,"count":7`, times: 2, stdout: `^201 created\n$`},
}

var sample = regexp.MustCompile("(?s)\n```[a-z]+\n((?:#|//) (post[a-z0-9_]*\\.[a-z]+)\n.*?)\n```\n")

// samples returns the complete samples of docs/calling.md, which begin with the name of their file, and the programs of
// examples/without-client.
func samples(t *testing.T) map[string]string {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(root, "docs", "calling.md"))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, found := range sample.FindAllStringSubmatch(string(document), -1) {
		sources[found[2]] = found[1] + "\n"
	}
	folder := os.DirFS(filepath.Join(root, "examples", "without-client"))
	files, err := fs.Glob(folder, "*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := fs.ReadFile(folder, file)
		if err != nil {
			t.Fatal(err)
		}
		sources[file] = string(source)
	}
	if len(sources) != 8 {
		t.Fatalf("there are %d samples, want 4 in docs/calling.md and 4 in examples/without-client", len(sources))
	}
	return sources
}

// Each sample is run exactly as it is shown.
func TestSamplesInCallingDoWhatTheDocumentPromises(t *testing.T) {
	sources := samples(t)
	endpoint := serve(t)
	for file, source := range sources {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			app := install(t, file, source)
			for _, tr := range trials {
				t.Run(tr.name, func(t *testing.T) {
					// A sample's timeouts are those of an app. A busy machine can
					// exceed them, and a minute of the clock can end meanwhile.
					testkit.Retry(t, func(t testing.TB) { tr.check(t, endpoint, app) })
				})
			}
			if file == "post_mail.mjs" {
				for name, tr := range mails {
					t.Run(name, func(t *testing.T) {
						testkit.Retry(t, func(t testing.TB) {
							if last, _ := tr.run(t, endpoint, app); !regexp.MustCompile(tr.stdout).MatchString(last.stdout) {
								t.Errorf("stdout %q and stderr %q, want %q", last.stdout, last.stderr, tr.stdout)
							}
						})
					})
				}
			}
			t.Run("an unknown host", func(t *testing.T) {
				tr := trial{fault: isUnknown, status: failed, stderr: "host|ENOTFOUND"}
				if file == "post_boto3.py" || file == "post.sh" { // these can't tell it from a refused connection
					tr = trial{fault: isUnknown, stdout: "201 created\n", stderr: "Could not connect"}
				}
				testkit.Retry(t, func(t testing.TB) { tr.check(t, endpoint, app) })
			})
		})
	}
}

// check runs app in the situation of the trial and checks the outcome.
func (tr trial) check(t testing.TB, endpoint string, app program) {
	t.Helper()
	last, counted := tr.run(t, endpoint, app)
	asWanted := last.status == tr.status || tr.status == failed && last.status > 0
	if !asWanted || !strings.HasPrefix(last.stdout, tr.stdout) || !regexp.MustCompile(tr.stderr).MatchString(last.stderr) {
		t.Errorf("status %d, stdout %q and stderr %q, want %d, %q and %q", last.status, last.stdout, last.stderr, tr.status, tr.stdout, tr.stderr)
	}
	if tr.status != 0 && strings.Contains(last.stdout, "201") {
		t.Errorf("a mistake lets the user through: %s", last.stdout)
	}
	if tr.stderr == "" && strings.Contains(last.stderr, "posts-guard") {
		t.Errorf("the sample logs a problem: %s", last.stderr)
	}
	if tr.before != "" && !strings.Contains(last.stdout, "Rate limit exceeded: Too many requests in a short period") {
		t.Errorf("stdout %q, want the guard's message in it", last.stdout)
	}
	if counted != tr.counted {
		t.Errorf("%d counted, want %d", counted, tr.counted)
	}
}

// run runs app in the situation of the trial. It returns how app ended and how
// many posts are counted then.
func (tr trial) run(t testing.TB, endpoint string, app program) (last end, counted int64) {
	t.Helper()
	user, request := tr.user, rand.Text()
	if user == "" {
		user = rand.Text()
	}
	if tr.before != "" {
		askPosts(t, endpoint, user, tr.before)
	}
	called := tr.fault.between(t, endpoint)
	for range max(1, tr.times) {
		cmd := app.command(t, called, user, request)
		cmd.Env = slices.DeleteFunc(cmd.Env, func(variable string) bool {
			name, _, _ := strings.Cut(variable, "=")
			return slices.Contains(tr.unset, name)
		})
		last = finish(t, cmd)
	}
	if tr.user == "" {
		counted = askPosts(t, endpoint, user, `,"op":"status"`)
	}
	return last, counted
}

// askPosts invokes posts-guard for create_post and returns its activityCount.
// further has more fields of the event, each after a comma.
func askPosts(t testing.TB, endpoint, user, further string) int64 {
	t.Helper()
	event := `{"userId":"` + user + `","activity":"create_post"` + further + `}`
	o := byGo(t, endpoint, 1, []call{{"posts-guard", json.RawMessage(event)}})[0]
	var answer struct{ ActivityCount int64 }
	if err := json.Unmarshal(o.Payload, &answer); err != nil || o.FunctionError != "" {
		t.Fatalf("%s: %v", event, o)
	}
	return answer.ActivityCount
}
