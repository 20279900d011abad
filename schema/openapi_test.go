package schema_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cric-talk/guards/internal/testkit"
)

// The components of openapi.json accept what the guards answer.
func TestOpenAPIDescribesTheGoldenAnswers(t *testing.T) {
	text := read(t, "openapi.json")
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	testkit.OK(t, compiler.AddResource("openapi.json", decode(t, text)))
	component := func(name string) *jsonschema.Schema {
		return testkit.Must(compiler.Compile("openapi.json#/components/schemas/" + name))(t)
	}
	event, answer, problem := component("Event"), component("Answer"), component("Problem")
	var document struct {
		Paths map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct {
						Examples map[string]struct{ Value json.RawMessage }
					}
				}
				Responses map[string]struct{ Headers, Content map[string]any }
			}
		}
	}
	testkit.OK(t, json.Unmarshal(text, &document))
	post, seen := document.Paths["/"].Post, map[string]bool{}
	for file, g := range goldens(t) {
		if g.HTTP.Body != nil {
			check(t, problem, g.HTTP.Body)
		} else {
			check(t, event, g.Event)
			check(t, answer, g.Answer)
		}
		status := strconv.Itoa(g.HTTP.Status)
		seen[status] = true
		for name, value := range g.HTTP.Headers {
			_, described := post.Responses[status].Headers[name]
			_, contentType := post.Responses[status].Content[value]
			if !described && (name != "Content-Type" || !contentType) {
				t.Errorf("%s: the response %s has no header %s: %s", file, status, name, value)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("the golden answers have the statuses %v, want 200, 400, 429 and 503", seen)
	}
	for _, example := range post.RequestBody.Content["application/json"].Examples {
		check(t, event, example.Value)
	}
	if strings.Contains(string(text), ".schema.json") {
		t.Error("openapi.json refers to another file")
	}
}

// Some tools require a field that has a default, and openapi-python-client drops a schema
// if another one contains it with an inner object.
func TestOpenAPISuitsTheTools(t *testing.T) {
	type schema struct {
		Properties map[string]struct{ Default, Items any }
	}
	var document struct {
		Components struct{ Schemas map[string]schema }
	}
	testkit.OK(t, json.Unmarshal(read(t, "openapi.json"), &document))
	for name, s := range document.Components.Schemas {
		for field, p := range s.Properties {
			items, _ := p.Items.(map[string]any)
			if p.Default != nil || items["properties"] != nil {
				t.Errorf("%s.%s has the default %v, or an object without a name: %v", name, field, p.Default, items)
			}
		}
	}
}
