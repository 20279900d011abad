package dynamostore

import (
	"encoding/base64"
	"encoding/binary"
	"iter"
	"math"
	"strconv"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/strictjson"
)

// manyNames is how many names an update can have before attributes get short
// aliases. Aliases keep each expression below DynamoDB's limit of 4,096 bytes.
const manyNames = 40

// updateBody returns the UpdateItem request of w, in JSON. It writes w in
// DynamoDB's expression language. That language has no arithmetic in
// conditions, and it rejects redundant parentheses. A comparison with a missing
// attribute is false.
func updateBody(table string, w ratelimit.Write) []byte {
	names := len(w.Update.Acts) + len(w.Update.Also)
	for _, terms := range w.Update.If {
		names += len(terms)
	}
	e := expression{
		text:    make([]byte, 0, 480+32*names),
		values:  make([]byte, 0, 400+32*names),
		numbers: make([]named, 0, 2+names),
	}
	if names > manyNames {
		e.aliases = make(map[string]string, names)
	}
	e.condition(w)
	condition := len(e.text)
	e.update(w)

	b := make([]byte, 0, 400+len(e.text)+len(e.values)+len(e.names))
	b = appendKey(append(b, '{'), table, w.Key)
	if condition > 0 {
		b = appendText(append(b, `,"ConditionExpression":`...), e.text[:condition])
	}
	b = appendText(append(b, `,"UpdateExpression":`...), e.text[condition:])
	if len(e.names) > 0 {
		b = append(b, `,"ExpressionAttributeNames":{`...)
		b = append(append(b, e.names...), '}')
	}
	if len(e.values) > 0 {
		b = append(b, `,"ExpressionAttributeValues":{`...)
		b = append(append(b, e.values...), '}')
	}
	return append(b, `,"ReturnValues":"ALL_NEW","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`...)
}

// An expression is a text, and the values and names that the text refers to.
type expression struct {
	text    []byte
	values  []byte // in JSON: ":0":{"N":"9"},":1":{"B":"AAAA"}
	count   int    // values
	numbers []named
	names   []byte            // in JSON: "#0":"a","#1":"b"
	aliases map[string]string // aliases by attribute; nil: attributes have no aliases
	before  string            // what stands before the next element of a list
}

// A named number is already in the values, under the name valueNames[value].
type named struct {
	number int64
	value  int
}

// valueNames holds the names of the values, in order: :0, :1, ... An update has
// fewer than 512 values: TestLawSmall bounds its operators and bytes.
var valueNames = func() (names [512]string) {
	for i := range names {
		names[i] = ":" + short(i)
	}
	return names
}()

// short writes n with as few characters as possible.
func short(n int) string { return strconv.FormatInt(int64(n), 36) }

// write appends the parts to the text.
func (e *expression) write(parts ...string) {
	for _, part := range parts {
		e.text = append(e.text, part...)
	}
}

// attr returns the attribute's name in the text: its alias, or the name itself
// if attributes have no aliases.
func (e *expression) attr(name string) string {
	if e.aliases == nil {
		return name
	}
	alias, ok := e.aliases[name]
	if !ok {
		alias = "#" + short(len(e.aliases))
		e.aliases[name] = alias
		e.names = appendMember(e.names, alias)
		e.names = appendText(e.names, name)
	}
	return alias
}

// value begins the next value and returns its name. The caller appends the value.
func (e *expression) value() (name string) {
	name = valueNames[e.count]
	e.count++
	e.values = appendMember(e.values, name)
	return name
}

// string adds s to the values and returns its name.
func (e *expression) string(s string) (name string) {
	name = e.value()
	e.values = appendString(e.values, s)
	return name
}

// elements adds elements of a set of ids, and returns their name.
func (e *expression) elements(marks iter.Seq[ratelimit.Element]) (name string) {
	name = e.value()
	before := `{"BS":[`
	for m := range marks {
		e.values = appendElement(append(e.values, before...), m)
		before = ","
	}
	e.values = append(e.values, `]}`...)
	return name
}

// mark adds an element of a set of ids to the values and returns its name.
func (e *expression) mark(m ratelimit.Element) (name string) {
	name = e.value()
	e.values = append(appendElement(append(e.values, `{"B":`...), m), '}')
	return name
}

// appendElement appends an element of a set: the id, with its note if it has one.
func appendElement(b []byte, m ratelimit.Element) []byte {
	var element [idSize + noteSize]byte
	copy(element[:], m.ID[:])
	binary.BigEndian.PutUint64(element[idSize:], uint64(m.Note))
	if m.Note == 0 {
		return appendBinary(b, element[:idSize])
	}
	return appendBinary(b, element[:])
}

// number returns the name of n. It adds n to the values once.
func (e *expression) number(n int64) string {
	for _, known := range e.numbers {
		if known.number == n {
			return valueNames[known.value]
		}
	}
	e.numbers = append(e.numbers, named{n, e.count})
	name := e.value()
	e.values = strconv.AppendInt(append(e.values, `{"N":"`...), n, 10)
	e.values = append(e.values, `"}`...)
	return name
}

// condition writes w's ids and guard, joined by AND.
func (e *expression) condition(w ratelimit.Write) {
	and := ""
	for k := range w.LookIn {
		set := e.attr(k.Set)
		e.write(and, "(attribute_not_exists(", set, ") OR NOT contains(", set, ", ", e.mark(ratelimit.Element{ID: k.ID}), "))")
		and = " AND "
	}
	for _, k := range [...]ratelimit.Location{w.Drop, w.RelyOn} {
		if k.Set == "" {
			continue
		}
		e.write(and, "contains(", e.attr(k.Set), ", ", e.mark(ratelimit.Element{ID: k.ID}), ")")
		and = " AND "
		if k.Note != 0 {
			e.write(and, "contains(", e.attr(k.Set), ", ", e.mark(k.Element), ")")
		}
	}
	for note := range w.Unless {
		e.write(and, "NOT contains(", e.attr(w.Drop.Set), ", ", e.mark(ratelimit.Element{ID: w.Drop.ID, Note: note}), ")")
	}
	for _, t := range w.Update.Also {
		e.write(and)
		e.term(t)
		and = " AND "
	}
	if len(w.Update.If) > 0 {
		e.write(and)
		either := w.Update.If
		e.join(len(either), " OR ", and != "", func(i int) {
			e.join(len(either[i]), " AND ", len(either) > 1, func(j int) { e.term(either[i][j]) })
		})
	}
}

// join writes n parts, joined by a word. If other conditions stand beside several parts,
// it puts them in parentheses.
func (e *expression) join(n int, word string, beside bool, part func(int)) {
	beside = beside && n > 1
	if beside {
		e.write("(")
	}
	for i := range n {
		if i > 0 {
			e.write(word)
		}
		part(i)
	}
	if beside {
		e.write(")")
	}
}

// term writes a term, such as activityCount <= :3, without bounds that exclude nothing.
func (e *expression) term(t policy.Term) {
	attr := e.attr(t.Attr)
	switch {
	case t.From > t.To:
		e.write("attribute_not_exists(", attr, ")")
		return
	case t.OrMissing:
		e.write("(attribute_not_exists(", attr, ") OR ")
	}
	switch {
	case t.From == math.MinInt64:
		e.write(attr, " <= ", e.number(t.To))
	case t.To == math.MaxInt64:
		e.write(attr, " >= ", e.number(t.From))
	case t.From == t.To:
		e.write(attr, " = ", e.number(t.From))
	default:
		e.write(attr, " BETWEEN ", e.number(t.From), " AND ", e.number(t.To))
	}
	if t.OrMissing {
		e.write(")")
	}
}

// update writes the update expression of w: SET, REMOVE, ADD and DELETE, each
// with a list. It leaves out empty lists.
func (e *expression) update(w ratelimit.Write) {
	e.list("SET ")
	if w.Expires != 0 {
		e.element(ExpiresAt, " = ", e.number(w.Expires))
		if w.Key.Window != 0 {
			e.element(activity, " = ", e.string(w.Key.Activity))
			e.element(windowKey, " = ", e.number(w.Key.Window))
			e.element(createdAt, " = if_not_exists("+createdAt+", ", e.number(w.Now), ")")
		}
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Set {
			e.element(e.attr(a.Attr), " = ", e.number(a.Value))
		}
	}
	e.list("REMOVE ")
	for _, name := range w.Forget() {
		e.element(name)
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Delete {
			e.element(e.attr(a.Attr))
		}
	}
	e.list("ADD ")
	if into := w.Into(); into.Set != "" {
		e.element(e.attr(into.Set), " ", e.elements(w.Adds))
	}
	for _, a := range w.Update.Acts {
		if a.Verb == policy.Add {
			e.element(e.attr(a.Attr), " ", e.number(a.Value))
		}
	}
	e.list("DELETE ")
	if w.Drop.Set != "" {
		e.element(e.attr(w.Drop.Set), " ", e.elements(w.Drops))
	}
}

// list begins a list. Its keyword is written with its first element, if there is one.
func (e *expression) list(keyword string) {
	if e.before == comma { // the list before this one has elements
		e.write(" ")
	}
	e.before = keyword
}

// element writes an element of the list.
func (e *expression) element(parts ...string) {
	e.write(e.before)
	e.write(parts...)
	e.before = comma
}

const comma = ", "

// readBody returns the GetItem request of an item, in JSON.
func readBody(table string, k ratelimit.Key) []byte {
	b := appendKey(append(make([]byte, 0, 256), '{'), table, k)
	return append(b, `,"ConsistentRead":true}`...)
}

// appendKey appends the table and the key of a request.
func appendKey(b []byte, table string, k ratelimit.Key) []byte {
	b = appendText(append(b, `"TableName":`...), table)
	b = appendString(append(b, `,"Key":{"`+UserID+`":`...), k.UserID)
	b = appendString(append(b, `,"`+ActivityWindow+`":`...), sortKey(k))
	return append(b, '}')
}

// appendMember appends the name of a member of an object, after a comma unless it is
// the first member.
func appendMember(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	return append(appendText(b, name), ':')
}

// appendString appends a string attribute.
func appendString(b []byte, s string) []byte {
	return append(appendText(append(b, `{"S":`...), s), '}')
}

// appendText appends a JSON string. User ids, names of activities and names of
// attributes are ASCII, so it cannot fail.
func appendText[T string | []byte](b []byte, text T) []byte {
	b, _ = strictjson.AppendQuote(b, text)
	return b
}

// appendBinary appends bytes as DynamoDB writes them in JSON.
func appendBinary(b, value []byte) []byte {
	b = base64.StdEncoding.AppendEncode(append(b, '"'), value)
	return append(b, '"')
}
