package scaffold

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/limits"
)

// Missing returns one sentence for each piece that a guard lacks in the
// template, and for each piece that is another guard's. A sentence begins with
// the file and the line, and ends with what to do. guards new writes all pieces.
func Missing(text string, guards limits.Guards) ([]string, error) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("%s: %w", templateFile, err)
	}
	f := &finder{layout: layoutOf(text), values: values, guards: guards}
	for i, g := range guards {
		f.pieces(i, g)
		f.role(g)
		f.listed(g)
	}
	return f.found, nil
}

// A finder collects sentences about a template.
type finder struct {
	layout layout
	values map[string]any
	guards limits.Guards
	found  []string
}

// wrong adds a sentence about a line, which is an index.
func (f *finder) wrong(line int, format string, args ...any) {
	f.found = append(f.found, fmt.Sprintf("%s:%d: ", templateFile, line+1)+fmt.Sprintf(format, args...))
}

// pieces checks the resources and outputs of a guard.
func (f *finder) pieces(index int, g limits.Guard) {
	for n, group := range pieces(g) {
		for m, p := range group {
			at := f.layout.find(p.id)
			if at < 0 {
				line, example := f.place(index, n, m)
				f.wrong(line, "%s has no %s: add %s below this line%s", g.Name, p.what, p.id, example)
				continue
			}
			value := get(f.values, section(p)+"."+p.id)
			for _, path := range slices.Sorted(maps.Keys(p.want)) {
				if got := shown(get(value, path)); got != p.want[path] {
					f.wrong(at, "the %s of %s has the %s %s: write %s", p.what, g.Name, path, got, p.want[path])
				}
			}
		}
	}
}

// section returns the part of the template that holds a piece.
func section(p piece) string {
	if p.what == "output" {
		return "Outputs"
	}
	return "Resources"
}

// place returns the line after which a piece belongs, and a text that names an
// example.
func (f *finder) place(index, n, m int) (line int, example string) {
	line = max(0, f.layout.find("Table")) // the first resource: nothing better is there
	own := pieces(f.guards[index])[n]
	placed := false
	if m > 0 && f.layout.find(own[m-1].id) >= 0 {
		line, placed = f.layout.end(own[m-1].id)-1, true
	}
	others := slices.Concat(f.guards[index+1:], f.guards[:index]) // the guard before comes last
	for _, other := range slices.Backward(others) {
		theirs := pieces(other)[n]
		if f.layout.find(theirs[m].id) < 0 {
			continue
		}
		if last := theirs[len(theirs)-1].id; !placed && f.layout.find(last) >= 0 {
			line = f.layout.end(last) - 1
		}
		placed = true
		example = fmt.Sprintf(", as %s in line %d", theirs[m].id, f.layout.find(theirs[m].id)+1)
		if !onlyQueues(other) { // a guard of queues has other rights than most
			break
		}
	}
	return line, example
}

// role checks that a guard's role allows what the guard does.
func (f *finder) role(g limits.Guard) {
	id := LogicalID(g.Name) + "Function"
	at := f.layout.find(id)
	if at < 0 {
		return
	}
	needs := []string{"dynamodb:UpdateItem", "dynamodb:GetItem"}
	if !onlyQueues(g) {
		needs = append(needs, "dynamodb:DeleteItem")
	}
	policies, _ := get(f.values, "Resources."+id+".Properties.Policies").([]any)
	if len(policies) == 0 {
		f.wrong(f.layout.end(id)-1, "%s has no policy: add the line Policies: *counts below this line", g.Name)
		return
	}
	for _, action := range needs {
		if !allows(policies, action, "Table.Arn") {
			f.wrong(at, "the policy of %s does not allow %s on the table: add this action", g.Name, action)
		}
	}
}

// allows reports whether policies allow an action on a resource.
func allows(policies []any, action, resource string) bool {
	for _, p := range policies {
		statements, _ := get(p, "Statement").([]any)
		for _, s := range statements {
			actions := list(get(s, "Action"))
			if get(s, "Effect") == "Allow" && slices.Contains(actions, action) && slices.Contains(list(get(s, "Resource")), resource) {
				return true
			}
		}
	}
	return false
}

// listed checks that the policy for backends and the dashboard name a guard.
func (f *finder) listed(g limits.Guard) {
	arn := LogicalID(g.Name) + "Function.Arn"
	statements, _ := get(f.values, "Resources.InvokePolicy.Properties.PolicyDocument.Statement").([]any)
	for _, action := range []string{"lambda:InvokeFunction", "lambda:InvokeFunctionUrl"} {
		if !allows([]any{map[string]any{"Statement": unconditional(statements)}}, action, arn) {
			f.wrong(f.before(g, backendLine, "InvokePolicy"), "InvokePolicy does not allow backends %s on %s: add the line %s below this line",
				action, g.Name, backendLine(g.Name))
		}
	}
	body, _ := get(f.values, "Resources.Dashboard.Properties.DashboardBody").(string)
	if !strings.Contains(body, dashboardLine(g.Name)) {
		f.wrong(f.before(g, dashboardLine, "Dashboard"), "the dashboard has no line for %s: add %s below this line, with a comma between the two",
			g.Name, dashboardLine(g.Name))
	}
}

// unconditional replaces each !If by its first choice.
func unconditional(statements []any) (all []any) {
	for _, s := range statements {
		if choice, ok := s.([]any); ok && len(choice) == 3 {
			s = choice[1]
		}
		all = append(all, s)
	}
	return all
}

// before returns the line of the last other guard in a list, or the first line
// of the resource that has the list.
func (f *finder) before(g limits.Guard, line func(string) string, resource string) int {
	for _, other := range slices.Backward(f.guards) {
		if at := f.layout.last(line(other.Name)); other.Name != g.Name && at >= 0 {
			return at
		}
	}
	return max(0, f.layout.find(resource))
}

// get returns the value under a path of names and indexes, or nil.
func get(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// list returns a value that is one text or a list of texts as a list.
func list(v any) (all []string) {
	if text, ok := v.(string); ok {
		return []string{text}
	}
	values, _ := v.([]any)
	for _, e := range values {
		if text, ok := e.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// shown returns a value for a person.
func shown(v any) string {
	if v == nil {
		return "(none)"
	}
	return fmt.Sprint(v)
}
