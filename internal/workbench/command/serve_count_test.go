package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestServeCreatesTheTable(t *testing.T) {
	credentials(t)
	t.Setenv("DECISION_TIMEOUT", "5s") // a busy machine takes more than a second
	endpoint, _ := serve(t, "--store", "dynamodb", "--endpoint", dynamotest.Endpoint(t), "--region", "us-east-1",
		"--table", dynamotest.Table(t), "--create-table") // the table exists already
	if r := post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`); !strings.HasPrefix(r.Text, `{"allowed":true,"reason":"ok",`) {
		t.Error(r.Text)
	}
}

// serve reads the variables that the deployed functions read.
func TestServeReadsTheFunctionsVariables(t *testing.T) {
	ask := func(endpoint, more string) testkit.Response {
		return post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"`+more+`}`)
	}
	for setting, want := range map[string]string{ // the answer to the eleventh request
		"MODE=enforce":      `{"allowed":false,"reason":"limited",`,
		"MODE=shadow":       `{"allowed":true,"reason":"shadow",`,
		"MODE=off":          `{"allowed":true,"reason":"unlimited",`,
		"ON_LIMIT=error":    `{"errorMessage":"Rate limit exceeded: Too many requests in a short period","errorType":"RateLimitExceeded"}`,
		"BYPASS_ROLES=boss": `{"allowed":false,"reason":"limited",`,
	} {
		t.Run(setting, func(t *testing.T) {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
			endpoint, log := serve(t)
			ask(endpoint, `, "count": 10`)
			if r := ask(endpoint, ""); !strings.HasPrefix(r.Text, want) {
				t.Errorf("%s, want %s", r.Text, want)
			}
			if r := ask(endpoint, `, "roles": ["boss"]`); strings.Contains(r.Text, `"reason":"bypassed"`) != (value == "boss") {
				t.Errorf("the role boss: %s", r.Text)
			}
			if !strings.Contains(log.String(), ", counting in memory, "+setting+"; press Ctrl-C to stop\n") {
				t.Errorf("serve does not report that %s is set:\n%s", setting, log)
			}
		})
	}
}

func TestServeCleanup(t *testing.T) {
	endpoint, _ := serve(t)
	post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`)
	for _, tt := range [][2]string{
		{`{}`, `{"scanned":1,"stale":0,"deleted":0,"users":1,"finished":true,`}, {`{"userId": "u1"}`, `{"scanned":1,"stale":1,"deleted":1,"users":1,"finished":true,`},
	} {
		if r := post(t, invocations(endpoint, "cleanup"), tt[0]); !strings.HasPrefix(r.Text, tt[1]) {
			t.Errorf("%s: %s, want %s", tt[0], r.Text, tt[1])
		}
	}
}

// The log names the limit or the subject that refused, without its id.
func TestTheLogNamesWhatRefuses(t *testing.T) {
	endpoint, log := serveGuards(t, rooms, atPinned)
	for _, user := range []string{"u1", "u2"} {
		post(t, invocations(endpoint, "rooms-guard"), `{"userId": "`+user+`", "activity": "write", "count": 3, "subjects": {"room": "r42"}}`)
	}
	for _, line := range []string{"check write: allowed, ok, 3/3 used", "check write: refused, limited, 3/4 used of room, wait "} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %q:\n%s", line, log)
		}
	}
	if strings.Contains(log.String(), "r42") {
		t.Errorf("the log names a room:\n%s", log)
	}
}
