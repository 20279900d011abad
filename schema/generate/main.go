// Command generate writes openapi.json from the schemas. It runs in the folder
// schema, as go generate does.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

func main() {
	document, err := openAPI(".")
	if err == nil {
		err = os.WriteFile("openapi.json", document, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// openapi.tmpl is the document with $event, $answer, $limit and $problem instead of
// their schemas.
//
//go:embed openapi.tmpl
var template string

// openAPI returns the OpenAPI document of a guard's HTTP form. It contains the
// schemas of a folder, so that a tool needs only one file.
func openAPI(folder string) ([]byte, error) {
	document := template
	for _, name := range []string{"event", "answer", "problem"} {
		schema, err := fs.ReadFile(os.DirFS(folder), name+".schema.json")
		if err != nil {
			return nil, err
		}
		text := component(string(schema))
		if name == "answer" {
			var limit string
			if text, limit, err = withoutLimit(text); err != nil {
				return nil, err
			}
			document = strings.Replace(document, `"$limit"`, limit, 1)
		}
		document = strings.Replace(document, `"$`+name+`"`, text, 1)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(document), "", "  "); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// withoutLimit takes the schema of one limit out of the answer's, as a component of its
// own. A refusal's problem has all fields of an answer, and openapi-python-client drops a
// schema whose inner objects it would name twice.
func withoutLimit(answer string) (rest, limit string, err error) {
	var schema struct {
		Properties struct {
			Limits struct{ Items json.RawMessage }
		}
	}
	if err := json.Unmarshal([]byte(answer), &schema); err != nil {
		return "", "", fmt.Errorf("answer.schema.json: %w", err)
	}
	limit = string(schema.Properties.Limits.Items)
	return strings.Replace(answer, limit, `{ "$ref": "#/components/schemas/Limit" }`, 1), limit, nil
}

var (
	identity  = regexp.MustCompile(`(?m)^  "\$(schema|id)": .*\n`)
	standard  = regexp.MustCompile(`"description": "([^"]*)",([^{}]*),\s*"default": "?(\w+)"?`)
	reference = regexp.MustCompile(`"(\w)(\w+)\.schema\.json"`)
)

// component returns a schema as a component: it has no identity of its own, and
// its references lead to other components. Its defaults become words, because some tools
// make a field with a default one that each request must have.
func component(schema string) string {
	schema = strings.TrimSpace(identity.ReplaceAllString(schema, ""))
	schema = standard.ReplaceAllString(schema, `"description": "$1 The default is $3.",$2`)
	return reference.ReplaceAllStringFunc(schema, func(found string) string {
		match := reference.FindStringSubmatch(found)
		return `"#/components/schemas/` + strings.ToUpper(match[1]) + match[2] + `"`
	})
}
