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

// openapi.tmpl is the document with $event, $answer and $problem in place of
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
		document = strings.Replace(document, `"$`+name+`"`, component(string(schema)), 1)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(document), "", "  "); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

var (
	identity  = regexp.MustCompile(`(?m)^  "\$(schema|id)": .*\n`)
	reference = regexp.MustCompile(`"(\w)(\w+)\.schema\.json"`)
)

// component returns a schema as a component: it has no identity of its own, and
// its references lead to other components.
func component(schema string) string {
	schema = strings.TrimSpace(identity.ReplaceAllString(schema, ""))
	return reference.ReplaceAllStringFunc(schema, func(found string) string {
		match := reference.FindStringSubmatch(found)
		return `"#/components/schemas/` + strings.ToUpper(match[1]) + match[2] + `"`
	})
}
