package clients_test

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// A trial is one situation that an example runs in.
type trial struct {
	name   string
	before string   // fields of an event that is sent first, in addition to userId and activity
	user   string   // empty means a new user
	fault  fault    // what happens to requests on their way to the guard; nil: nothing
	at     string   // the address that the example asks; empty: the guards' address
	unset  []string // variables that the example's environment does not have
	times  int      // how often the example runs with the same requestId; 0 means once
	bare   bool     // whether only samples without a client run it: scenarios show it of the clients

	status         int    // wanted of the last run; failed means any but 0
	stdout, stderr string // wanted: patterns
	counted        int64  // wanted at the end
}

const (
	failed  = -2 // stands for any exit status but 0
	created = "^201 created\n$"
)

var trials = []trial{
	{name: "allowed", stdout: created, counted: 1},
	{name: "refused", before: `,"count":10`, stdout: "^429 .*Rate limit exceeded: Too many requests in a short period", counted: 10},
	{name: "a repeat with the same id", times: 2, stdout: created, counted: 1},

	// An outage lets the user through, and the example logs it.
	{name: "a lost answer", fault: losesAnAnswer, stdout: created, counted: 1},
	{name: "no server", at: nowhere, stdout: created, stderr: "onnect"},
	{name: "broken connections", bare: true, fault: breaks, stdout: created, stderr: "onnect|hang up|EOF"},
	{name: "throttled", bare: true, fault: refusing(http.StatusTooManyRequests, "TooManyRequestsException", "Rate exceeded"), stdout: created, stderr: "Rate exceeded|TooManyRequests"},
	{name: "a guard without its table", bare: true, fault: failing("Unavailable", "the table did not answer"), stdout: created, stderr: "the table did not answer"},
	{name: "a guard that timed out", bare: true, fault: failing("Sandbox.Timedout", "Task timed out"), stdout: created, stderr: "timed out"},
	{name: "an error of Lambda", bare: true, fault: refusing(http.StatusInternalServerError, "ServiceException", "An internal error occurred"), stdout: created, stderr: "An internal error|ServiceException"},

	// A mistake lets nobody through. A disabled key has the same status as an outage.
	{name: "a mistake in the event", user: strings.Repeat("u", 129), status: 1, stderr: "userId"},
	{name: "an id that is JSON", user: `u1", "roles": ["admin"], "op": "check`, status: failed, stderr: "userId|needs JSON escapes"},
	{name: "no region", bare: true, unset: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}, status: failed, stderr: "region"},
	{name: "no credentials", bare: true, unset: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, status: failed, stderr: "redentials"},
	{name: "a wrong function name", bare: true, fault: knowsAnotherName, status: failed, stderr: "unction"},
	{name: "no permission", fault: denied, status: failed, stderr: "nvoke"},
	{name: "a guard without its key", bare: true, fault: refusing(http.StatusBadGateway, "KMSDisabledException", "Lambda can't decrypt the variables"), status: failed, stderr: "KMSDisabled"},
	{name: "a guard that crashed", bare: true, fault: failing("Runtime.ExitError", "Runtime exited"), status: failed, stderr: "Runtime.ExitError"},
	{name: "another function", bare: true, fault: answering(`{"hello":"world"}`), status: failed, stderr: "posts-guard|hello"},
}

// mails are further trials of the sample that sends mails.
var mails = []trial{
	{name: "a mail at 80 %", before: `,"count":7`, stdout: `^201 created\nmail to \w+: you have used 8 of your 10 posts\n$`, counted: 8},
	{name: "no mail beyond 80 %", before: `,"count":8`, stdout: created, counted: 9},
	{name: "a mail at 100 %", before: `,"count":9`, stdout: `^201 created\nmail to \w+: you have used 10 of your 10 posts\n$`, counted: 10},
	{name: "no mail for a refusal", before: `,"count":10`, stdout: `^429 .*\n$`, counted: 10},
	{name: "no mail for a repeat", before: `,"count":7`, times: 2, stdout: created, counted: 8},
}

var sample = regexp.MustCompile("(?s)\n```[a-z]+\n((?:#|//) (post[a-z0-9_]*\\.[a-z]+)\n.*?)\n```\n")

// samples returns the complete samples of docs/calling.md, which begin with the name of their file, and the programs of
// examples/without-client and examples/crossed.
func samples(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, found := range sample.FindAllStringSubmatch(text(t, "docs", "calling.md"), -1) {
		sources[found[2]] = found[1] + "\n"
	}
	files := testkit.Must(filepath.Glob(filepath.Join(root, "examples", "without-client", "*.*")))(t)
	files = append(files, filepath.Join(root, "examples", "crossed", "post_mail.mjs"))
	for _, file := range files {
		sources[filepath.Base(file)] = string(testkit.Must(os.ReadFile(file))(t))
	}
	if len(sources) != 8 {
		t.Fatalf("there are %d samples, want 3 in docs/calling.md and 5 in examples", len(sources))
	}
	return sources
}

// Each sample is run exactly as it is shown. Its timeouts are an app's timeouts.
// A busy machine can exceed them, and a minute of the clock can end meanwhile.
func TestSamplesInCallingDoWhatTheDocumentPromises(t *testing.T) {
	testkit.Clients.Need(t)
	sources := samples(t)
	endpoint := serve(t)
	for file, source := range sources {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			app := install(t, file, source)
			hasClient := strings.Contains(source, "cric-talk/guards") || strings.Contains(source, "from guards import")
			try := func(tr trial) {
				t.Run(tr.name, func(t *testing.T) {
					testkit.Retry(t, func(t testing.TB) { tr.check(t, endpoint, app) })
				})
			}
			for _, tr := range trials {
				if !tr.bare || !hasClient {
					try(tr)
				}
			}
			if file == "post_mail.mjs" {
				for _, tr := range mails {
					try(tr)
				}
			}
			if !testkit.KnowsAbsent(t.Context(), unknownHost) {
				return
			}
			switch tr := (trial{name: "an unknown host", at: "http://" + unknownHost}); {
			case file == "post_boto3.py", file == "post.sh": // these can't tell it from a refused connection
				tr.stdout, tr.stderr = created, "Could not connect"
				try(tr)
			case !hasClient:
				tr.status, tr.stderr = failed, "host|ENOTFOUND"
				try(tr)
			}
		})
	}
}

// check runs app in the situation of the trial and checks the outcome.
func (tr trial) check(t testing.TB, endpoint string, app program) {
	t.Helper()
	user, request := cmp.Or(tr.user, rand.Text()), rand.Text()
	if tr.before != "" {
		askPosts(t, endpoint, user, tr.before)
	}
	at := cmp.Or(tr.at, endpoint)
	if tr.fault != nil {
		at = tr.fault.between(t, endpoint)
	}
	var last end
	for range max(1, tr.times) {
		cmd := app.command(t, at, user, request)
		cmd.Env = without(cmd.Env, tr.unset...)
		last = finish(t, cmd)
	}
	asWanted := last.status == tr.status || tr.status == failed && last.status > 0
	if !asWanted || !regexp.MustCompile(tr.stdout).MatchString(last.stdout) || !regexp.MustCompile(tr.stderr).MatchString(last.stderr) {
		t.Errorf("status %d, stdout %q and stderr %q, want %d, %q and %q", last.status, last.stdout, last.stderr, tr.status, tr.stdout, tr.stderr)
	}
	if tr.status != 0 && strings.Contains(last.stdout, "201") {
		t.Errorf("a mistake lets the user through: %s", last.stdout)
	}
	if tr.stderr == "" && strings.Contains(last.stderr, "posts-guard") {
		t.Errorf("the sample logs a problem: %s", last.stderr)
	}
	if tr.user != "" {
		return // no guard counts for such a user
	}
	if counted := askPosts(t, endpoint, user, `,"op":"status"`); counted != tr.counted {
		t.Errorf("%d counted, want %d", counted, tr.counted)
	}
}

// askPosts invokes posts-guard for create_post and returns its activityCount.
// further has more fields of the event, each after a comma.
func askPosts(t testing.TB, endpoint, user, further string) int64 {
	t.Helper()
	event := `{"userId":"` + user + `","activity":"create_post"` + further + `}`
	o := byGo(t, endpoint, []call{{"posts-guard", json.RawMessage(event)}})[0]
	var answer struct{ ActivityCount int64 }
	if err := json.Unmarshal(o.Payload, &answer); err != nil || o.FunctionError != "" {
		t.Fatalf("%s: %v", event, o)
	}
	return answer.ActivityCount
}
