package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

var names = []string{"event.schema.json", "answer.schema.json", "error.schema.json", "problem.schema.json"}

// schemas compiles the schemas, which also checks that they are schemas.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiled := map[string]*jsonschema.Schema{}
	for _, name := range names {
		testkit.OK(t, compiler.AddResource("https://github.com/cric-talk/guards/schema/"+name, decode(t, read(t, name))))
	}
	for _, name := range names {
		compiled[name] = testkit.Must(compiler.Compile("https://github.com/cric-talk/guards/schema/" + name))(t)
	}
	return compiled
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(name))(t)
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// properties returns the type of each property of a schema, as a text.
func properties(t *testing.T, schema any) map[string]string {
	t.Helper()
	types := map[string]string{}
	for name, property := range schema.(map[string]any)["properties"].(map[string]any) {
		property := property.(map[string]any)
		if property["description"] == nil {
			t.Errorf("%s has no description", name)
		}
		kind, _ := property["type"].(string)
		if property["enum"] != nil && kind == "" {
			kind = "string"
		}
		if items, ok := property["items"].(map[string]any); ok {
			kind += fmt.Sprint(" of ", items["type"])
		}
		types[name] = kind
	}
	return types
}

// The guard itself lists the names that it decodes. TestTheEventSchemaAgreesWithTheGuard compares their types.
func TestTheEventSchemaHasTheFieldsOfARequest(t *testing.T) {
	_, err := handler(cricket.Posts).Invoke(t.Context(), []byte(`{"no":1}`))
	listed := strings.Split(regexp.MustCompile(`want only (.*)$`).FindStringSubmatch(err.Error())[1], ", ")
	slices.Sort(listed)
	testkit.Same(t, "the fields of event.schema.json", listed, slices.Sorted(maps.Keys(properties(t, decode(t, read(t, "event.schema.json"))))))
}

// docs/events.md has a table of the same fields.
func TestTheDocumentHasTheFieldsOfTheSchemas(t *testing.T) {
	document := string(read(t, "../docs/events.md"))
	for title, schema := range map[string]string{"## The event\n": "event.schema.json", "## The answer\n": "answer.schema.json"} {
		_, section, _ := strings.Cut(document, title)
		_, table, _ := strings.Cut(section, "| field")
		table, _, _ = strings.Cut(table, "\n\n")
		documented := map[string]bool{}
		for row := range strings.Lines(table) {
			_, cell, _ := strings.Cut(row, "|")
			cell, _, _ = strings.Cut(cell, "|")
			for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cell, -1) {
				documented[name[1]] = true
			}
		}
		want := slices.Sorted(maps.Keys(properties(t, decode(t, read(t, schema)))))
		testkit.Same(t, "the fields of "+schema+" in docs/events.md", want, slices.Sorted(maps.Keys(documented)))
	}
}

func handler(g limits.Guard) *guard.Handler {
	return &guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}
}

// full is an answer with every field that any answer has.
func full(t *testing.T) []byte {
	t.Helper()
	reading := policy.Reading{Name: "n", Limit: 1, Used: 1, Remaining: 1, Wait: 1e6, ResetAt: 1, WindowKey: 1, Locked: true, Crossed: 80}
	one := reading
	reading.Each = []policy.Reading{one}
	a := guard.Answer{
		Request: guard.Request{UserID: "u", Activity: "a", Op: guards.Check, RequestID: "r"},
		Allowed: true, Reason: ratelimit.OK, Granted: 1, Display: "d", Message: "m", Version: "v",
		Decision: &ratelimit.Decision{Reading: reading, At: 1, HeldUntil: 1, ReadyAt: 1, Waiting: 1, LimitedBy: "n"},
	}
	return a.JSON()
}

func TestTheAnswerSchemaHasTheFieldsOfAnAnswer(t *testing.T) {
	text := full(t)
	want := properties(t, decode(t, read(t, "answer.schema.json")))
	testkit.Same(t, "the fields of an answer", want, types(t, text))
	items := decode(t, read(t, "answer.schema.json")).(map[string]any)["properties"].(map[string]any)["limits"].(map[string]any)["items"]
	each := testkit.Must(json.Marshal(decode(t, text).(map[string]any)["limits"].([]any)[0]))(t)
	testkit.Same(t, "a limit", properties(t, items), types(t, each))
	var d client.Decision
	testkit.OK(t, json.Unmarshal(text, &d))
	again, err := json.Marshal(d)
	if err != nil || string(again) != string(text) {
		t.Errorf("the Go client makes\n%s, %v, of\n%s", again, err, text)
	}
}

// types returns the type of each member of an object.
func types(t *testing.T, text []byte) map[string]string {
	t.Helper()
	names := map[string]string{"string": "string", "json.Number": "integer", "bool": "boolean", "[]interface {}": "array of object"}
	all := map[string]string{}
	for name, v := range decode(t, text).(map[string]any) {
		all[name] = names[fmt.Sprintf("%T", v)]
	}
	return all
}
