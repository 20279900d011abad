package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/wiring"
)

var update = flag.Bool("update", false, "write the guards' answers to golden")

// A golden is a file of golden; see the package comment.
type golden struct {
	Name        string            `json:"name"`
	Guard       string            `json:"guard"`
	Activities  []string          `json:"activities,omitempty"`
	Limit       string            `json:"limit,omitzero"`
	Group       string            `json:"group,omitzero"`
	Subjects    []subject         `json:"subjects,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Table       string            `json:"table,omitzero"`
	Blocked     []live.Block      `json:"blocks,omitempty"`
	Now         int64             `json:"now"`
	Before      []json.RawMessage `json:"before"`
	Event       json.RawMessage   `json:"event"`
	Answer      json.RawMessage   `json:"answer,omitempty"`
	Error       json.RawMessage   `json:"error,omitempty"`
	HTTP        reply             `json:"http"`
}

// A subject is one of the first activity of a file.
type subject struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Optional bool   `json:"optional,omitzero"`
}

// away is a table that does not answer.
type away struct{ ratelimit.Store }

var errAway = &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "the table did not answer in time", Err: errors.New("away")}

func (away) Update(context.Context, ratelimit.Write) (ratelimit.Item, bool, error) {
	return ratelimit.Item{}, false, errAway
}
func (away) Read(context.Context, ratelimit.Key) (ratelimit.Item, error) {
	return ratelimit.Item{}, errAway
}

// A reply is the answer to the same event by Function URL. Body is there if it
// is a problem; otherwise it is the answer.
type reply struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body,omitempty"`
}

// goldens returns the files of golden by their names.
func goldens(t *testing.T) map[string]golden {
	t.Helper()
	files, err := filepath.Glob("golden/*.json")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	all := map[string]golden{}
	for _, file := range files {
		var g golden
		decoder := json.NewDecoder(bytes.NewReader(read(t, file)))
		decoder.DisallowUnknownFields()
		testkit.OK(t, decoder.Decode(&g))
		all[file] = g
	}
	return all
}

func TestGoldenAnswers(t *testing.T) {
	compiled := schemas(t)
	for file, g := range goldens(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			for name, value := range g.Environment {
				t.Setenv(name, value)
			}
			got := g
			got.Answer, got.Error = g.invoke(t)
			got.HTTP = g.post(t, got.Answer)
			if *update {
				write(t, file, got)
				return
			}
			for name, pair := range map[string][2]json.RawMessage{
				"answer": {g.Answer, got.Answer}, "error": {g.Error, got.Error}, "body": {g.HTTP.Body, got.HTTP.Body},
			} {
				if want, have := compact(t, pair[0]), compact(t, pair[1]); want != have {
					t.Errorf("the %s is\n%s, want\n%s", name, have, want)
				}
			}
			if g.Answer != nil {
				var d guards.Decision
				testkit.OK(t, json.Unmarshal(g.Answer, &d))
				if again, err := json.Marshal(d); err != nil || string(again) != compact(t, g.Answer) {
					t.Errorf("as a Decision, the answer is\n%s, %v, want\n%s", again, err, compact(t, g.Answer))
				}
			}
			if diff := cmp.Diff(g.HTTP.Headers, got.HTTP.Headers); diff != "" || g.HTTP.Status != got.HTTP.Status {
				t.Errorf("status %d, want %d (-golden +guard):\n%s", got.HTTP.Status, g.HTTP.Status, diff)
			}
			g.validate(t, compiled)
		})
	}
}

// A hot key of a prepaid limit crosses without a receipt, and the schema knows that.
func TestAHotKeyCrossesWithoutAReceipt(t *testing.T) {
	schema, g := schemas(t)["answer.schema.json"], golden{Guard: "posts-guard", Limit: "200/1m prepaid", Now: 1_700_000_000_000}
	ask, crossed := g.handler(t), false
	for range 200 {
		out := testkit.Must(ask([]byte(`{"userId":"u1","activity":"create_post"}`)))(t)
		check(t, schema, out)
		var answer struct{ At, Crossed int64 }
		testkit.OK(t, json.Unmarshal(out, &answer))
		crossed = crossed || answer.Crossed != 0 && answer.At == 0
	}
	if !crossed {
		t.Error("each check that crossed has a receipt")
	}
}

// validate checks that each part of the file fits its schema.
func (g *golden) validate(t *testing.T, compiled map[string]*jsonschema.Schema) {
	t.Helper()
	for _, event := range g.Before {
		check(t, compiled["event.schema.json"], event)
	}
	if g.Answer != nil {
		check(t, compiled["event.schema.json"], g.Event)
		check(t, compiled["answer.schema.json"], g.Answer)
		known := properties(t, decode(t, read(t, "answer.schema.json")))
		for name := range decode(t, g.Answer).(map[string]any) {
			if known[name] == "" {
				t.Errorf("answer.schema.json lacks %s", name)
			}
		}
	}
	if g.Error != nil {
		check(t, compiled["error.schema.json"], g.Error)
	}
	if g.HTTP.Body != nil {
		check(t, compiled["problem.schema.json"], g.HTTP.Body)
	}
}

func check(t *testing.T, schema *jsonschema.Schema, text []byte) {
	t.Helper()
	if err := schema.Validate(decode(t, text)); err != nil {
		t.Errorf("%s\n%v", text, err)
	}
}

// handler returns the guard after the events that came before.
func (g *golden) handler(t *testing.T) func(event []byte) ([]byte, error) {
	t.Helper()
	settings := testkit.Must(wiring.Function.Settings())(t)
	var store ratelimit.Store = new(memstore.Store)
	if g.Table == "away" {
		store = away{}
	}
	h := settings.Handler(g.limits(t), store)
	h.Limiter.Now = func() time.Time { return time.UnixMilli(g.Now) }
	h.Delay = func(context.Context, guard.Job) error { return nil }
	if len(g.Blocked) > 0 {
		h.Live = &live.Follower{Source: g, Guards: limits.Guards{h.Guard}, Now: h.Limiter.Now}
		testkit.OK(t, h.Live.Read(t.Context()))
	}
	number := 0
	ask := func(event []byte) ([]byte, error) {
		number++
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", number)
		h.NewID = func(context.Context) string { return id }
		return h.Invoke(t.Context(), event)
	}
	for _, event := range g.Before {
		if _, err := ask(event); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
	}
	return ask
}

// Settings implements [live.Source].
func (g *golden) Settings(context.Context, bool) (live.Stored, error) { return live.Stored{}, nil }

// Blocks implements [live.Source].
func (g *golden) Blocks(context.Context, bool) (live.Stored, error) {
	return live.Blocks{All: g.Blocked}.Stored(1)
}

// limits returns the guard, with the file's limit instead of its first one, and
// without activities that the file does not list, if it lists any.
func (g *golden) limits(t *testing.T) limits.Guard {
	t.Helper()
	for _, found := range cricket.All {
		if found.Name != g.Guard {
			continue
		}
		if len(g.Activities) > 0 {
			other := func(a limits.Activity) bool { return !slices.Contains(g.Activities, a.Name) }
			found.Activities = slices.DeleteFunc(slices.Clone(found.Activities), other)
		}
		if g.Limit != "" {
			found.Activities = []limits.Activity{{Name: found.Activities[0].Name, Limit: policy.Must(g.Limit), Group: g.Group}}
			for _, s := range g.Subjects {
				one := limits.Subject{Name: s.Name, Limit: policy.Must(s.Limit), Optional: s.Optional}
				found.Activities[0].Subjects = append(found.Activities[0].Subjects, one)
			}
		}
		return found
	}
	t.Fatalf("there is no guard %q", g.Guard)
	return limits.Guard{}
}

func (g *golden) invoke(t *testing.T) (answer, failure json.RawMessage) {
	t.Helper()
	out, err := g.handler(t)(g.Event)
	if err == nil {
		return out, nil
	}
	failure, err = json.Marshal(map[string]string{"errorType": reflect.TypeOf(err).Elem().Name(), "errorMessage": err.Error()})
	testkit.OK(t, err)
	return nil, failure
}

// post asks by Function URL.
func (g *golden) post(t *testing.T, answer []byte) (r reply) {
	t.Helper()
	e := events.LambdaFunctionURLRequest{Version: "2.0", RawPath: "/", Body: string(g.Event)}
	e.RequestContext.HTTP.Method = "POST"
	event := testkit.Must(json.Marshal(e))(t)
	out, err := g.handler(t)(event)
	var response events.LambdaFunctionURLResponse
	if err != nil || json.Unmarshal(out, &response) != nil {
		t.Fatalf("%s, %v", out, err)
	}
	r = reply{Status: response.StatusCode, Headers: response.Headers}
	if response.Body != string(answer) {
		r.Body = json.RawMessage(response.Body)
	}
	return r
}

func compact(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); text != nil && err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func write(t *testing.T, file string, g golden) {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	testkit.OK(t, encoder.Encode(g))
	testkit.OK(t, os.WriteFile(file, b.Bytes(), 0o600))
}
