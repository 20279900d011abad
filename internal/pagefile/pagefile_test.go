package pagefile_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/limits"
)

// whole is a page with each field.
const whole = `{
  "$schema": "https://github.com/cric-talk/guards/schema/page.schema.json",
  "guards": [
    {
      "name": "chat-guard", "message": "Too many.", "blockedMessage": "No.", "description": "Limits chats.", "memorySize": 512, "delayedQueue": true,
      "activities": [
        {"name": "write", "limit": "writes: 10/1m", "tiers": {"premium": "writes: 20/1m"}, "label": "messages", "group": "chat", "hold": true, "subjects": [
          {"name": "room", "limit": "writes: 60/1m", "tiers": {"premium": "writes: 90/1m"}, "optional": true}
        ]},
        {"name": "read", "unlimited": true},
        {"name": "send", "limit": "reservoir 10/10s ahead 15m"}
      ]
    }
  ]
}`

func TestRead(t *testing.T) {
	want := []guards.Guard{{
		Name: "chat-guard", Message: "Too many.", BlockedMessage: "No.", Description: "Limits chats.", MemorySize: 512, DelayedQueue: true,
		Activities: []guards.Activity{
			{
				Name: "write", Limit: "writes: 10/1m", Tiers: guards.Tiers{"premium": "writes: 20/1m"}, Label: "messages", Group: "chat", Hold: true,
				Subjects: []guards.Subject{{Name: "room", Limit: "writes: 60/1m", Tiers: guards.Tiers{"premium": "writes: 90/1m"}, Optional: true}},
			},
			{Name: "read", Unlimited: true},
			{Name: "send", Limit: "reservoir 10/10s ahead 15m"},
		},
	}}
	got, err := pagefile.Read("limits.json", []byte(whole))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// The page of this repository says the same in both forms.
func TestThePageOfThisRepositoryInJSON(t *testing.T) {
	text := testkit.Must(os.ReadFile("testdata/limits.json"))(t)
	got, err := pagefile.Read("limits.json", text)
	if diff := cmp.Diff(limits.All, got); diff != "" || err != nil {
		t.Errorf("%v (-Go +JSON):\n%s", err, diff)
	}
}

// page returns a page of one guard with these activities. The guard begins in line 1, and the
// activities in line 2.
func page(activities string) string {
	return `{"guards": [{"name": "a-guard", "message": "m", "activities": [` + "\n" + activities + "\n]}]}"
}

// Each row is a page and all its mistakes, one a line.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ name, page, want string }{
		{"an empty file", "", `limits.json:1: the file is empty`},
		{"white space", "\n\n", `limits.json:1: the file is empty`},
		{"a cut file", "{\n\"guards\": [\n", `limits.json:2: the file ends in the middle of a value`},
		{"a line comment", "{\n  // our limits\n  \"guards\": []}", `limits.json:2: a comment, and JSON has none; a description has room for one`},
		{"a comment at the end", "{\"guards\": []} // all", `limits.json:1: a comment, and JSON has none; a description has room for one`},
		{"a block comment", "{\"guards\":\n/* none */ []}", `limits.json:2: a comment, and JSON has none; a description has room for one`},
		{"a comment of YAML", "# our limits\n{}", `limits.json:1: a comment, and JSON has none; a description has room for one`},
		{"a last comma in a list", page("{\"name\": \"b\", \"unlimited\": true},"), `limits.json:2: a comma that no value follows`},
		{"a last comma in an object", "{\n\"guards\": [],\n}", `limits.json:2: a comma that no value follows`},
		{"a missing comma", "{\"$schema\": \"x\"\n\"guards\": []}", `limits.json:2: invalid character '"' after object value (expecting ',' or '}')`},
		{"single quotes", "{\n'guards': []}", `limits.json:2: invalid character '\'' at start of value`},
		{"a name without quotes", "{guards: []}", `limits.json:1: invalid character 'g' at start of value`},
		{"an escape that is none", "{\"guards\": [\"\\x\"]}", "limits.json:1: invalid escape sequence `\\x` in string"},
		{"a line end in a text", "{\"$schema\": \"a\nb\"}", `limits.json:1: invalid character '\n' in string (expecting non-control character)`},
		{"bytes that are not UTF-8", "{\n\"guards\": [{\"name\": \"\xff\"}]}", `limits.json:2: bytes that are not UTF-8`},
		{"half a surrogate pair", "{\"$schema\": \"\\ud800\"}", "limits.json:1: invalid surrogate pair `\\ud800\"}` in string"},
		{"a byte order mark", "\ufeff{}", `limits.json:1: the file begins with a byte order mark: save it as UTF-8 without one`},
		{"UTF-16", "\xff\xfe{\x00}\x00", `limits.json:1: bytes that are not UTF-8`},
		{"two values", "{\"guards\": []}\n{}", `limits.json:2: something follows after the end of the page`},
		{"a list", "\n[]", `limits.json:2: the page is a list, want an object such as {"guards": [...]}`},
		{"null", "null", `limits.json:1: the page is null, want an object such as {"guards": [...]}`},
		{"no guards", "{}", `limits.json:1: guards is missing or empty, want at least one guard`},
		{"an empty list of guards", `{"guards": []}`, `limits.json:1: guards is missing or empty, want at least one guard`},
		{"an object of guards", `{"guards": {"a-guard": {}}}`, `limits.json:1: guards is an object, want a list`},
		{"a schema that is no text", "{\"$schema\": 1,\n\"guards\": null}", "limits.json:1: $schema is a number, want a text\nlimits.json:2: guards is null, want a list"},
		{"an unknown field of the page", `{"guard": []}`, `limits.json:1: unknown field "guard", want one of $schema, guards`},
		{"an unknown field of a guard", "{\"guards\": [{\"name\": \"a-guard\",\n\"Message\": \"m\"}]}",
			`limits.json:2: a-guard: unknown field "Message", want one of name, message, blockedMessage, activities, delayedQueue, description, memorySize`},
		{"an unknown field of an activity", page(`{"name": "b", "limt": "5/1m"}`),
			`limits.json:2: a-guard, activity "b": unknown field "limt", want one of name, limit, tiers, label, group, hold, subjects, unlimited`},
		{"an unknown field of a subject", page("{\"name\": \"b\", \"limit\": \"5/1m\", \"subjects\": [{\"name\": \"room\",\n\"max\": 3}]}"),
			`limits.json:3: a-guard, activity "b", subject "room": unknown field "max", want one of name, limit, tiers, optional`},
		{"a repeated field", page("{\"name\": \"b\", \"limit\": \"5/1m\",\n\"limit\": \"6/1m\"}"), `limits.json:3: a-guard, activity "b": "limit" is repeated`},
		{"a repeated tier", page("{\"name\": \"b\", \"limit\": \"5/1m\", \"tiers\": {\"p\": \"6/1m\",\n\"p\": \"7/1m\"}}"), `limits.json:3: a-guard, activity "b": the tier "p" is repeated`},
		{"a guard that is a text", `{"guards": ["a-guard"]}`, `limits.json:1: guard 1 is a text, want an object`},
		{"an activity that is a text", page(`{"name": "b", "unlimited": true}, "c"`), `limits.json:2: a-guard: activity 2 is a text, want an object`},
		{"a limit that is a number", page(`{"name": "b", "limit": 5}`), `limits.json:2: a-guard, activity "b": limit is a number, want a limit such as "5/1m"`},
		{"a tier that is a number", page(`{"name": "b", "limit": "5/1m", "tiers": {"p": 6}}`), `limits.json:2: a-guard, activity "b": the tier "p" is a number, want a limit such as "5/1m"`},
		{"tiers that are a list", page(`{"name": "b", "limit": "5/1m", "tiers": ["p"]}`), `limits.json:2: a-guard, activity "b": tiers is a list, want an object such as {"premium": "30/1m"}`},
		{"a boolean that is a text", page(`{"name": "b", "unlimited": "true"}`), `limits.json:2: a-guard, activity "b": unlimited is a text, want true or false`},
		{"a size that is a text", `{"guards": [{"name": "a-guard", "memorySize": "256"}]}`, `limits.json:1: a-guard: memorySize is a text, want a whole number`},
		{"a size with a fraction", `{"guards": [{"name": "a-guard", "memorySize": 256.5}]}`, `limits.json:1: a-guard: memorySize is 256.5, want a whole number such as 256`},
		{"mistakes without names", "{\"guards\": [{\"message\": 1, \"activities\": [\n{\"label\": 2}]}]}", "limits.json:1: guard 1: message is a number, want a text\nlimits.json:2: guard 1, activity 1: label is a number, want a text"},

		{"several mistakes of the form", "{\"guards\": [{\"name\": \"a-guard\", \"mesage\": \"m\", \"activities\": [\n{\"name\": \"b\", \"limit\": 5},\n{\"limit\": \"x\", \"Hold\": true, \"name\": \"c\"}]},\n{\"name\": 1}]}",
			"limits.json:1: a-guard: unknown field \"mesage\", want one of name, message, blockedMessage, activities, delayedQueue, description, memorySize\n" +
				"limits.json:2: a-guard, activity \"b\": limit is a number, want a limit such as \"5/1m\"\n" +
				"limits.json:3: a-guard, activity \"c\": unknown field \"Hold\", want one of name, limit, tiers, label, group, hold, subjects, unlimited\n" +
				"limits.json:4: guard 2: name is a number, want a text"},
		{"a limit that is none", page(`{"name": "b", "limit": "ten"}`), `limits.json:2: a-guard, activity "b": limit is "ten": "ten" is not a kind of limit and has no slash; want 10/1m, bucket 10/1m burst 15, log 100/12h, sliding 50/1h, reservoir 10/10s ahead 15m, lockout 5/15m for 30m`},
		{"several mistakes of limits", page("{\"name\": \"b\"},\n{\"name\": \"B\", \"limit\": \"5/1m\"},\n{\"name\": \"c\", \"limit\": \"5/1m\", \"hold\": true, \"unlimited\": true}"),
			"limits.json:2: a-guard, activity \"b\": it has no limit and is not marked Unlimited\n" +
				"limits.json:3: a-guard, activity \"B\": name contains 'B', want a to z and _\n" +
				"limits.json:4: a-guard, activity \"c\": it is unlimited and has a limit, a group, subjects or Hold"},
		{"an activity listed twice", page("{\"name\": \"b\", \"unlimited\": true},\n{\"name\": \"b\", \"limit\": \"5/1m\"}"), `limits.json:3: a-guard: activities lists "b" twice`},
		{"an activity of two guards", strings.Replace(page(`{"name": "b", "unlimited": true}`), "]}]}", "]},\n{\"name\": \"b-guard\", \"message\": \"m\", \"activities\": [\n{\"name\": \"b\", \"unlimited\": true}]}]}", 1),
			`limits.json:5: b-guard, activity "b": a-guard has an activity of this name; give each activity a name of its own`},
		{"a guard without a name", "{\"guards\": [\n{\"message\": \"m\", \"activities\": [{\"name\": \"b\", \"unlimited\": true}]}]}", `limits.json:2: guard "" needs a name, a message and activities`},
		{"two guards of one name", strings.Replace(page(`{"name": "b", "unlimited": true}`), "]}]}", "]},\n{\"name\": \"a-guard\", \"message\": \"m\", \"activities\": [{\"name\": \"c\", \"unlimited\": true}]}]}", 1),
			`limits.json:4: guards lists "a-guard" twice`},
		{"a size that no function has", strings.Replace(page(`{"name": "b", "unlimited": true}`), `"m"`, `"m", "memorySize": 1`, 1), `limits.json:1: a-guard: MemorySize is 1, want 128 to 10240, or 0 for the one of Globals`},
	} {
		got, err := pagefile.Read("limits.json", []byte(tt.page))
		if err == nil || got != nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want\n%s", tt.name, err, tt.want)
		}
	}
}

// A page in JSON can come from anybody, so no text makes Read panic, and what it accepts is valid.
func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Add(page(`{"name": "b", "limit": "5/1m"}`))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := pagefile.Read("limits.json", []byte(text))
		if err != nil {
			return
		}
		if err := guards.Validate(got); err != nil {
			t.Errorf("it accepts a page that has mistakes: %v", err)
		}
		var other struct{ Guards []guards.Guard }
		if err := json.Unmarshal([]byte(text), &other); err != nil || !cmp.Equal(other.Guards, got) {
			t.Errorf("encoding/json reads another page, %v: %s", err, cmp.Diff(other.Guards, got))
		}
	})
}

// A function reads its page at each start. The goal is at most 1 ms.
func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	text := testkit.Must(os.ReadFile("testdata/limits.json"))(b)
	for b.Loop() {
		testkit.Must(pagefile.Read("limits.json", text))(b)
	}
}
