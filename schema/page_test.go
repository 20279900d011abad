package schema_test

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

const pageSchema = "https://github.com/cric-talk/guards/schema/page.schema.json"

// compiledPage compiles the schema of pages, which also checks that it is one.
func compiledPage(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	testkit.OK(t, compiler.AddResource(pageSchema, decode(t, read(t, "page.schema.json"))))
	return compiler.MustCompile(pageSchema)
}

func TestThePageSchemaHasTheFieldsOfAGuard(t *testing.T) {
	defs := decode(t, read(t, "page.schema.json")).(map[string]any)["$defs"].(map[string]any)
	for name, of := range map[string]reflect.Type{"guard": reflect.TypeFor[guards.Guard](), "activity": reflect.TypeFor[guards.Activity](), "subject": reflect.TypeFor[guards.Subject]()} {
		got := slices.Sorted(maps.Keys(properties(t, defs[name])))
		want := slices.Sorted(slices.Values(pagefile.FieldNames(of)))
		testkit.Same(t, "fields of "+name, want, got)
	}
	for _, text := range defs["limit"].(map[string]any)["examples"].([]any) {
		if _, err := policy.Parse(text.(string)); err != nil {
			t.Errorf("an example of a limit: %v", err)
		}
	}
}

// The schema accepts what a program accepts, and refuses what a program refuses for its form.
func TestThePageSchemaAgreesWithThePrograms(t *testing.T) {
	schema := compiledPage(t)
	form := regexp.MustCompile(`want (a|an|true or false|at least one guard)\b|unknown field|needs a name, a message|MemorySize is \d{5}|tier is|name contains`)
	check(t, schema, read(t, "../internal/pagefile/testdata/limits.json")) // the page of this repository
	values := []string{`null`, `true`, `0`, `256`, `256.5`, `20000`, `""`, `"x"`, `"5/1m"`, `"-"`, `[]`, `["x"]`, `[{}]`, `{}`, `{"p": "6/1m"}`, `{"p": 6}`, `{"ä": "6/1m"}`, `[{"name": "room", "limit": "9/1m"}]`, `[{"name": "b", "unlimited": true}]`}
	agree := func(page string) {
		t.Helper()
		_, byProgram := pagefile.Read("limits.json", []byte(page))
		bySchema := schema.Validate(decode(t, []byte(page)))
		switch {
		case byProgram == nil && bySchema != nil:
			t.Errorf("%s: the schema refuses what a program accepts: %v", page, bySchema)
		case byProgram != nil && bySchema == nil && form.MatchString(byProgram.Error()):
			t.Errorf("%s: the schema accepts what a program refuses: %v", page, byProgram)
		}
	}
	for _, value := range values {
		agree(`{"guards": ` + value + `}`)
		agree(`{"guards": [` + value + `]}`)
		for _, field := range pagefile.FieldNames(reflect.TypeFor[guards.Guard]()) {
			page := map[string]string{"name": `"a-guard"`, "message": `"m"`, "activities": `[{"name": "b", "limit": "5/1m"}]`}
			page[field] = value
			agree(`{"guards": [` + object(page) + `]}`)
		}
		for _, field := range pagefile.FieldNames(reflect.TypeFor[guards.Activity]()) {
			activity := map[string]string{"name": `"b"`, "limit": `"5/1m"`}
			activity[field] = value
			agree(`{"guards": [{"name": "a-guard", "message": "m", "activities": [` + object(activity) + `]}]}`)
		}
		for _, field := range pagefile.FieldNames(reflect.TypeFor[guards.Subject]()) {
			subject := map[string]string{"name": `"room"`, "limit": `"5/1m"`}
			subject[field] = value
			agree(`{"guards": [{"name": "a-guard", "message": "m", "activities": [{"name": "b", "limit": "5/1m", "subjects": [` + object(subject) + `]}]}]}`)
		}
	}
}

// object returns an object with members whose values are JSON.
func object(members map[string]string) string {
	text := "{"
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if text != "{" {
			text += ", "
		}
		text += `"` + name + `": ` + members[name]
	}
	return text + "}"
}
