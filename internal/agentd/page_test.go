package agentd_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// beside returns a copy of the generic agent in a folder, with the page of this repository or
// another one beside it.
func beside(t *testing.T, page string) (binary string) {
	t.Helper()
	dir := t.TempDir()
	if page == "" {
		text := testkit.Must(os.ReadFile("../pagefile/testdata/limits.json"))(t)
		page = string(text)
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "limits.json"), []byte(page), 0o600))
	// By a process of its own: a file that this one writes can't be started while another test starts something.
	binary = filepath.Join(dir, "guards-agent")
	if out, err := exec.CommandContext(t.Context(), "cp", lambdatest.Build(t, "./cmd/generic/guards-agent"), binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// wrongPage has two mistakes.
const wrongPage = "{\"guards\": [{\"name\": \"a-guard\", \"message\": \"m\", \"activities\": [\n{\"name\": \"b\", \"limit\": 5},\n{\"name\": \"c\", \"limt\": \"5/1m\"}]}]}"

// The agent that is the same for every project decides by the page beside it, as the agent of a
// project in Go does.
func TestAGenericAgent(t *testing.T) {
	t.Parallel()
	own, generic := newCaller(testkit.FreeAddress(t), "local"), newCaller(testkit.FreeAddress(t), "local")
	start(t, append(slices.Clone(nowhere), "GUARDS_AGENT_ADDR="+own.address)...)
	startBinary(t, beside(t, ""), append(slices.Clone(nowhere), "GUARDS_AGENT_ADDR="+generic.address)...)
	own.listening(t)
	generic.listening(t)
	testkit.InOneWindow(t, time.Minute, 15*time.Second)
	for _, event := range []string{
		`{"userId":"u1","activity":"like","requestId":"r1"}`, `{"userId":"u1","activity":"publish"}`, `{"userId":"u1","activity":"like","teir":1}`, `{}`,
	} {
		status, body, err := own.ask(t.Context(), event)
		other, otherBody, otherErr := generic.ask(t.Context(), event)
		if err != nil || otherErr != nil || status != other || string(body) != string(otherBody) {
			t.Errorf("%s: %d %s, %v by its own agent; %d %s, %v by the generic one", event, status, body, err, other, otherBody, otherErr)
		}
	}
	for n := range 11 {
		if d := generic.decide(t, check); d.Allowed != (n < 10) || d.Limit != 10 {
			t.Errorf("%d: %+v", n, d)
		}
	}
}

// A mistake in the page ends the agent with all of them. In Lambda each check is answered with
// them, and the agent lives.
func TestMistakesInThePageOfAGenericAgent(t *testing.T) {
	t.Parallel()
	const one, two = `:2: a-guard, activity "b": limit is a number, want a limit such as "5/1m"`, `:3: a-guard, activity "c": unknown field "limt"`
	exit := startBinary(t, beside(t, wrongPage), nowhere...).Exit(t)
	if log := exit.Logs; exit.Code != 1 || !strings.Contains(log, one) || !strings.Contains(log, two) || strings.Count(log, "guards-agent: ") != 2 {
		t.Errorf("%+v", exit)
	}
	exit = startBinary(t, lambdatest.Build(t, "./cmd/generic/guards-agent"), nowhere...).Exit(t)
	if exit.Code != 1 || !strings.Contains(exit.Logs, "guards-agent: there is no page of limits, want ") {
		t.Errorf("%+v", exit)
	}
	page := filepath.Join(filepath.Dir(beside(t, wrongPage)), "limits.json")
	for variable, says := range map[string][]string{
		"GUARDS_PAGE=" + page:       {strings.ReplaceAll(one, `"`, `\"`), strings.ReplaceAll(two, `"`, `\"`)},
		"GUARDS_PAGE=/no/such.json": {`GUARDS_PAGE is \"/no/such.json\", and there is no such file`},
		"GUARDS_PAGE=":              {"there is no page of limits, want /var/task/limits.json or /opt/guards/limits.json"},
	} {
		c := newCaller(testkit.FreeAddress(t), "local")
		e := lambdatest.StartExtension(t, lambdatest.Build(t, "./cmd/generic/guards-agent"), nil, append(slices.Clone(nowhere), variable, "GUARDS_AGENT_ADDR="+c.address)...)
		e.Wait(t)
		for range 2 {
			status, body, err := c.ask(t.Context(), check)
			for _, text := range says {
				if err != nil || status != 500 || !strings.Contains(string(body), text) {
					t.Errorf("%s: %d %s, %v, want %s", variable, status, body, err, text)
				}
			}
		}
		if log := e.Logs(); !e.Alive() || strings.Count(log, `"level":"ERROR"`) != 1 {
			t.Errorf("%s: %s", variable, log)
		}
	}
}

// In Lambda, mistakes in the limits are what each check is told, and the function lives. If its
// API fails, the agent registers again.
func TestMistakesInTheLimits(t *testing.T) {
	wrong := []guards.Guard{{Name: "g-guard", Message: "m", Activities: []guards.Activity{{Name: "a"}, {Name: "b", Limit: "ten"}}}}
	address := testkit.FreeAddress(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("GUARDS_AGENT_ADDR", address)
	var out, errs testkit.Stream
	over, waits := make(chan struct{}), make(chan struct{})
	failures := 2
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2020-01-01/extension/register", func(w http.ResponseWriter, _ *http.Request) {
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.Header().Set("Lambda-Extension-Identifier", "e1")
	})
	mux.HandleFunc("GET /2020-01-01/extension/event/next", func(w http.ResponseWriter, _ *http.Request) {
		close(waits)
		<-over
		_, _ = w.Write([]byte(`{"eventType":"SHUTDOWN"}`))
	})
	api := testkit.Serve(t, mux.ServeHTTP)
	t.Setenv("AWS_LAMBDA_RUNTIME_API", strings.TrimPrefix(api.URL, "http://"))
	ended := make(chan int, 1)
	go func() { ended <- agentd.Run(func() ([]guards.Guard, error) { return wrong, nil }, nil, &out, &errs) }()
	select {
	case <-waits:
	case status := <-ended:
		t.Fatalf("it ends with %d: %s%s", status, &out, &errs)
	}
	status, body, err := newCaller(address, "local").ask(t.Context(), check)
	if err != nil || status != 500 || !strings.Contains(string(body), `\"ten\"`) || !strings.Contains(string(body), "it has no limit") {
		t.Errorf("%d %s, %v", status, body, err)
	}
	close(over)
	if status := <-ended; status != 0 || !strings.Contains(out.String(), `"level":"ERROR"`) {
		t.Errorf("%d: %s", status, &out)
	}
}

func TestArguments(t *testing.T) {
	for argument, want := range map[string]struct {
		status int
		begins string
	}{
		"--help": {0, "guards-agent answers for the guards on this machine"}, "version": {0, "guards-agent "}, "sreve": {2, `guards-agent: unknown arguments "sreve"`},
	} {
		var out testkit.Stream
		if status := agentd.Run(nil, []string{argument}, &out, &out); status != want.status || !strings.HasPrefix(out.String(), want.begins) {
			t.Errorf("%s: %d: %s, want %d: %s", argument, status, &out, want.status, want.begins)
		}
	}
}
