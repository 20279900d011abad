package pagefile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards"
)

// object fills the fields of a struct.
func (r *reader) object(n node, v reflect.Value, where string) {
	seen, names := map[string]bool{}, FieldNames(v.Type())
	for _, m := range n.members {
		i := slices.Index(names, m.name)
		switch {
		case i < 0:
			r.wrong(m.line, where, "unknown field %q, want one of %s", m.name, strings.Join(names, ", "))
		case seen[m.name]:
			r.wrong(m.line, where, "%q is repeated", m.name)
		default:
			r.value(m.name, m.value, v.Field(i), where)
		}
		seen[m.name] = true
	}
}

// FieldNames returns the names in JSON of the fields of a struct, such as a guards.Guard.
func FieldNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		names = append(names, fieldName(f))
	}
	return names
}

// fieldName returns the field's name with a small first letter, unless a tag says another.
func fieldName(f reflect.StructField) string {
	if tag := f.Tag.Get("json"); tag != "" {
		return tag
	}
	return strings.ToLower(f.Name[:1]) + f.Name[1:]
}

// value sets a field, an element of a list, or a tier. What is its name, for mistakes.
func (r *reader) value(what string, n node, v reflect.Value, where string) {
	switch v.Kind() {
	case reflect.String:
		if r.want(n, where, what, v, '"') {
			v.SetString(n.text)
		}
	case reflect.Bool:
		if r.want(n, where, what, v, 't', 'f') {
			v.SetBool(n.kind == 't')
		}
	case reflect.Int:
		if !r.want(n, where, what, v, '0') {
			return
		}
		number, err := strconv.Atoi(n.text)
		if err != nil {
			r.wrong(n.line, where, "%s is %s, want a whole number such as 256", what, n.text)
		}
		v.SetInt(int64(number))
	case reflect.Slice:
		if !r.want(n, where, what, v, '[') {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
		names := map[string]bool{}
		for i, item := range n.items {
			name := item.member("name")
			if names[name] && name != "" { // so that the lines of what Validate finds are clear
				r.wrong(item.line, where, "%s lists %q twice", what, name)
			}
			names[name] = true
			r.element(i, name, item, v.Index(i), where)
		}
	case reflect.Map:
		if r.want(n, where, what, v, '{') {
			r.tiers(n, v, where)
		}
	default:
		panic("a page has no fields of the kind " + v.Kind().String()) // a mistake in package guards, which each test finds
	}
}

// tiers fills a [guards.Tiers].
func (r *reader) tiers(n node, v reflect.Value, where string) {
	all := guards.Tiers{}
	for _, m := range n.members {
		if _, twice := all[m.name]; twice {
			r.wrong(m.line, where, "the tier %q is repeated", m.name)
			continue
		}
		var limit guards.Limit
		r.value(fmt.Sprintf("the tier %q", m.name), m.value, reflect.ValueOf(&limit).Elem(), where)
		all[m.name] = limit
	}
	v.Set(reflect.ValueOf(all))
}

// element fills an element of a list: a guard, an activity or a subject.
func (r *reader) element(i int, name string, n node, v reflect.Value, where string) {
	kind := strings.ToLower(v.Type().Name())
	number := fmt.Sprintf("%s %d", kind, i+1)
	within := number
	if name != "" {
		within = fmt.Sprintf("%s %q", kind, name)
	}
	switch {
	case kind == "guard" && name != "":
		within = name
	case where != "":
		within = where + ", " + within
	}
	switch kind { // as guards.Validate writes them
	case "guard":
		r.know(n.line, name+": ", name+" and ", fmt.Sprintf("guard %q ", name))
	case "activity":
		r.know(n.line, fmt.Sprintf("%s, activity %q: ", where, name), fmt.Sprintf("activity %q: ", name), fmt.Sprintf("activities %q and ", name))
	}
	if r.want(n, where, number, v, '{') {
		r.object(n, v, within)
	}
}

// kinds are the words for what a text of JSON can have.
var kinds = map[byte]string{'n': "null", 't': "true", 'f': "false", '"': "a text", '0': "a number", '{': "an object", '[': "a list"}

// wanted are the words for what a field accepts.
var wanted = map[reflect.Kind]string{
	reflect.String: "a text", reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Slice: "a list",
	reflect.Map: `an object such as {"premium": "30/1m"}`, reflect.Struct: "an object",
}

// want reports whether a value is of one of some kinds. If not, it adds a mistake.
func (r *reader) want(n node, where, what string, v reflect.Value, accepts ...byte) bool {
	if strings.IndexByte(string(accepts), n.kind) >= 0 {
		return true
	}
	want := wanted[v.Kind()]
	if v.Type() == reflect.TypeFor[guards.Limit]() {
		want = `a limit such as "5/1m"`
	}
	r.wrong(n.line, where, "%s is %s, want %s", what, kinds[n.kind], want)
	return false
}
