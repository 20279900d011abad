package dynamostore

import (
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// manyNames is how many names an update can have before attributes get short
// aliases. Aliases keep each expression below DynamoDB's limit of 4,096 bytes.
const manyNames = 40

// updateInput writes w in DynamoDB's expression language. That language has no
// arithmetic in conditions, and it rejects redundant parentheses. A comparison
// with a missing attribute is false.
func updateInput(table string, w ratelimit.Write) *dynamodb.UpdateItemInput {
	names := len(w.Update.Acts) + len(w.Update.Also)
	for _, terms := range w.Update.If {
		names += len(terms)
	}
	others := 5 // values of ids and of the store's own attributes
	if w.Key.Window != 0 {
		others = 9
	}
	e := expression{values: make(map[string]types.AttributeValue, others+names), numbers: make([]named, 0, 2+names)}
	if names > manyNames {
		e.names, e.aliases = make(map[string]string, names), make(map[string]string, names)
	}
	e.Grow(480 + 32*names)
	e.condition(w)
	end := e.Len()
	e.update(w)
	condition, update := e.String()[:end], e.String()[end:]
	in := &dynamodb.UpdateItemInput{
		TableName:                           &table,
		Key:                                 key(w.Key),
		UpdateExpression:                    &update,
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           e.values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	return in
}

// An expression is a text, and the values and names that the text refers to.
type expression struct {
	strings.Builder
	values  map[string]types.AttributeValue
	numbers []named
	names   map[string]string // attributes by alias; nil: attributes have no aliases
	aliases map[string]string // aliases by attribute
	before  string            // what stands before the next element of a list
}

// A named number is already in the values, under the name valueNames[value].
type named struct {
	number int64
	value  int
}

// valueNames holds the names of the values, in order: :0, :1, ... Law 6 of
// package policy keeps an update below 512 values.
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
		_, _ = e.WriteString(part) // a strings.Builder returns no errors
	}
}

// attr returns the attribute's name in the text: its alias, or the name itself
// if attributes have no aliases.
func (e *expression) attr(name string) string {
	if e.names == nil {
		return name
	}
	alias, ok := e.aliases[name]
	if !ok {
		alias = "#" + short(len(e.names))
		e.aliases[name], e.names[alias] = alias, name
	}
	return alias
}

// value adds v to the values and returns its name.
func (e *expression) value(v types.AttributeValue) string {
	name := valueNames[len(e.values)]
	e.values[name] = v
	return name
}

// bytes adds b to the values and returns its name.
func (e *expression) bytes(b []byte) string { return e.value(&types.AttributeValueMemberB{Value: b}) }

// number returns the name of n. It adds n to the values once.
func (e *expression) number(n int64) string {
	for _, known := range e.numbers {
		if known.number == n {
			return valueNames[known.value]
		}
	}
	e.numbers = append(e.numbers, named{n, len(e.values)})
	return e.value(Number(n))
}

// condition writes w's ids and guard, joined by AND.
func (e *expression) condition(w ratelimit.Write) {
	and := ""
	for k := range w.LookIn {
		set := e.attr(k.Set)
		e.write(and, "(attribute_not_exists(", set, ") OR NOT contains(", set, ", ", e.bytes(k.ID[:]), "))")
		and = " AND "
	}
	if drop := w.Drop; drop.Set != "" {
		e.write(and, "contains(", e.attr(drop.Set), ", ", e.bytes(drop.ID[:]), ")")
		and = " AND "
	}
	for _, t := range w.Update.Also {
		e.write(and)
		e.term(t)
		and = " AND "
	}
	if len(w.Update.If) > 0 {
		e.write(and)
		e.guard(w.Update.If, and != "")
	}
}

// guard writes conjunctions, joined by OR. It puts them in parentheses if there
// are other conditions beside them.
func (e *expression) guard(either [][]policy.Term, beside bool) {
	several := len(either) > 1
	if beside && several {
		e.write("(")
	}
	for i, terms := range either {
		if i > 0 {
			e.write(" OR ")
		}
		e.conjunction(terms, several)
	}
	if beside && several {
		e.write(")")
	}
}

// conjunction writes terms, joined by AND. It puts them in parentheses if there
// is an OR beside them.
func (e *expression) conjunction(terms []policy.Term, beside bool) {
	beside = beside && len(terms) > 1
	if beside {
		e.write("(")
	}
	for i, t := range terms {
		if i > 0 {
			e.write(" AND ")
		}
		e.term(t)
	}
	if beside {
		e.write(")")
	}
}

// term writes a term, such as activityCount <= :3. It leaves out a bound that
// excludes nothing.
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
