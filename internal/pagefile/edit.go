package pagefile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/strictjson"
)

// Schema is the address of the JSON Schema of pages.
const Schema = "https://github.com/cric-talk/guards/schema/page.schema.json"

// Text returns a new page of one guard.
func Text(g guards.Guard) string {
	return "{\n  \"$schema\": \"" + Schema + "\",\n  \"guards\": [\n    " + guardText(g, "    ") + "\n  ]\n}\n"
}

// WithGuard returns a page with one more guard at its end. What is there stays as it is written.
func WithGuard(text string, g guards.Guard) (string, error) {
	return withElement(text, "guards", func(indent string) string { return guardText(g, indent) })
}

// WithActivity returns a page with one more activity of a guard.
func WithActivity(text, guard string, a guards.Activity) (string, error) {
	return withElement(text, guard, func(string) string { return line(reflect.ValueOf(a)) })
}

// withElement returns a page with one more element at the end of a list: the guards, or the
// activities of the guard with this name.
func withElement(text, of string, element func(indent string) string) (string, error) {
	top, wrong := parse([]byte(text))
	if wrong != nil {
		return "", fmt.Errorf("line %d: %s", wrong.line, wrong.what)
	}
	list := top.list("guards")
	if of != "guards" {
		i := slices.IndexFunc(list, func(g node) bool { return g.member("name") == of })
		if i < 0 {
			return "", fmt.Errorf("there is no guard %q", of)
		}
		list = list[i].list("activities")
	}
	if len(list) == 0 {
		return "", errors.New("the list is empty")
	}
	last := list[len(list)-1]
	head := text[:last.begin]
	space := head[len(strings.TrimRight(head, " \t\r\n")):] // as before the last element
	if space == "" {
		space = " "
	}
	indent := space[strings.LastIndex(space, "\n")+1:]
	return text[:last.end] + "," + space + element(indent) + text[last.end:], nil
}

// list returns the elements of a list that a member of an object has.
func (n node) list(name string) []node {
	for _, m := range n.members {
		if m.name == name {
			return m.value.items
		}
	}
	return nil
}

// guardText returns a guard with a line for each field and each activity. The first line has no
// indent.
func guardText(g guards.Guard, indent string) string {
	var fields []string
	for f, v := range reflect.ValueOf(g).Fields() {
		if v.IsZero() {
			continue
		}
		value := line(v)
		if f.Name == "Activities" {
			var all []string
			for _, a := range g.Activities {
				all = append(all, indent+"    "+line(reflect.ValueOf(a)))
			}
			value = "[\n" + strings.Join(all, ",\n") + "\n" + indent + "  ]"
		}
		fields = append(fields, indent+"  "+quote(fieldName(f))+": "+value)
	}
	return "{\n" + strings.Join(fields, ",\n") + "\n" + indent + "}"
}

// line returns a value of a page on one line, without fields that are zero.
func line(v reflect.Value) string {
	var parts []string
	switch v.Kind() {
	case reflect.String:
		return quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, line(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		tiers := v.Interface().(guards.Tiers)
		for _, name := range slices.Sorted(maps.Keys(tiers)) {
			parts = append(parts, quote(name)+": "+quote(string(tiers[name])))
		}
	default:
		for f, field := range v.Fields() {
			if !field.IsZero() {
				parts = append(parts, quote(fieldName(f))+": "+line(field))
			}
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quote returns a text in JSON.
func quote(text string) string {
	b, err := strictjson.AppendQuote(nil, text)
	if err != nil {
		return strconv.QuoteToASCII(text) // bytes that are not UTF-8, which Read then refuses
	}
	return string(b)
}
