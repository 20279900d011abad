package schema_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The components of openapi.json accept what the guards answer.
func TestOpenAPIDescribesTheGoldenAnswers(t *testing.T) {
	document := decode(t, read(t, "openapi.json"))
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	component := func(name string) *jsonschema.Schema {
		compiled, err := compiler.Compile("openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
	event, answer, problem := component("Event"), component("Answer"), component("Problem")
	post := document.(map[string]any)["paths"].(map[string]any)["/"].(map[string]any)["post"].(map[string]any)
	responses := post["responses"].(map[string]any)
	seen := map[string]bool{}
	files, err := filepath.Glob("golden/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var g golden
		if err := json.Unmarshal(read(t, file), &g); err != nil {
			t.Fatal(err)
		}
		if g.HTTP.Body != nil {
			check(t, problem, g.HTTP.Body)
		} else {
			check(t, event, g.Event)
			check(t, answer, g.Answer)
		}
		status := string(must(t, g.HTTP.Status))
		response, ok := responses[status].(map[string]any)
		if !ok {
			t.Errorf("%s: openapi.json has no response %s", file, status)
			continue
		}
		seen[status] = true
		headers, _ := response["headers"].(map[string]any)
		for name, value := range g.HTTP.Headers {
			_, described := headers[name]
			_, contentType := response["content"].(map[string]any)[value]
			if !described && (name != "Content-Type" || !contentType) {
				t.Errorf("%s: the response %s has no header %s: %s", file, status, name, value)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("the golden answers have the statuses %v, want 200, 400, 429 and 503", seen)
	}
	for name, value := range post["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["examples"].(map[string]any) {
		if err := event.Validate(value.(map[string]any)["value"]); err != nil {
			t.Errorf("the example %s: %v", name, err)
		}
	}
	if strings.Contains(string(read(t, "openapi.json")), ".schema.json") {
		t.Error("openapi.json refers to another file")
	}
}

func must(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
