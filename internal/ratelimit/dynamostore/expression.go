package dynamostore

import (
	"math"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// manyNames is the number of names in an update from which attributes get short
// aliases. Aliases keep each expression below DynamoDB's 4,096 bytes.
const manyNames = 40

// updateInput writes w in DynamoDB's expression language. That language has no
// arithmetic in conditions, and it rejects redundant parentheses. A comparison
// with a missing attribute is false.
func updateInput(table string, w ratelimit.Write) *dynamodb.UpdateItemInput {
	names := len(w.Update.Acts)
	for _, terms := range w.Update.If {
		names += len(terms)
	}
	e := expression{values: make(map[string]types.AttributeValue, 8), numbers: make(map[int64]string, 8)}
	if names > manyNames {
		e.names, e.aliases = make(map[string]string, names), make(map[string]string, names)
	}
	text := make([]byte, 0, 512+16*names)
	text = e.condition(text, w)
	end := len(text)
	text = e.update(text, w)
	both := string(text)
	condition, update := both[:end], both[end:]
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

// An expression collects the values and names that a text refers to. Its methods
// append to that text.
type expression struct {
	values  map[string]types.AttributeValue
	numbers map[int64]string  // the name of each number's value
	names   map[string]string // attributes by alias; nil: attributes have no aliases
	aliases map[string]string // aliases by attribute
}

// attr returns what the text calls an attribute.
func (e *expression) attr(name string) string {
	if e.names == nil {
		return name
	}
	alias, ok := e.aliases[name]
	if !ok {
		alias = "#" + strconv.Itoa(len(e.names))
		e.aliases[name], e.names[alias] = alias, name
	}
	return alias
}

// value names v in the text.
func (e *expression) value(v types.AttributeValue) string {
	name := ":v" + strconv.Itoa(len(e.values))
	e.values[name] = v
	return name
}

func (e *expression) bytes(b []byte) string { return e.value(&types.AttributeValueMemberB{Value: b}) }

// number names n in the text.
func (e *expression) number(n int64) string {
	name, ok := e.numbers[n]
	if !ok {
		name = e.value(number(n))
		e.numbers[n] = name
	}
	return name
}

// condition appends w's ids and guard, joined by AND.
func (e *expression) condition(text []byte, w ratelimit.Write) []byte {
	for i, k := range w.LookIn() {
		set := e.attr(k.Set)
		text = join(text, i, " AND ", "(attribute_not_exists(", set, ") OR NOT contains(", set, ", ", e.bytes(k.ID[:]), "))")
	}
	if drop := w.Drop; drop.Set != "" {
		text = join(text, len(text), " AND ", "contains(", e.attr(drop.Set), ", ", e.bytes(drop.ID[:]), ")")
	}
	return e.guard(text, w.Update.If)
}

// guard appends conjunctions, joined by OR. Beside other conditions they need
// parentheses.
func (e *expression) guard(text []byte, either [][]policy.Term) []byte {
	if len(either) == 0 {
		return text
	}
	beside := len(text) > 0
	text = join(text, len(text), " AND ")
	if beside && len(either) > 1 {
		text = append(text, '(')
	}
	for i, terms := range either {
		text = e.conjunction(join(text, i, " OR "), terms, len(either) > 1)
	}
	if beside && len(either) > 1 {
		text = append(text, ')')
	}
	return text
}

// conjunction appends terms, joined by AND. Beside an OR they need parentheses.
func (e *expression) conjunction(text []byte, terms []policy.Term, beside bool) []byte {
	beside = beside && len(terms) > 1
	if beside {
		text = append(text, '(')
	}
	for i, t := range terms {
		text = e.term(join(text, i, " AND "), t)
	}
	if beside {
		text = append(text, ')')
	}
	return text
}

// term appends the comparison of an attribute. It leaves out a bound that
// excludes nothing.
func (e *expression) term(text []byte, t policy.Term) []byte {
	attr := e.attr(t.Attr)
	switch {
	case t.From > t.To:
		return join(text, 0, "", "attribute_not_exists(", attr, ")")
	case t.OrMissing:
		text = join(text, 0, "", "(attribute_not_exists(", attr, ") OR ")
	}
	switch {
	case t.From == math.MinInt64:
		text = join(text, 0, "", attr, " <= ", e.number(t.To))
	case t.To == math.MaxInt64:
		text = join(text, 0, "", attr, " >= ", e.number(t.From))
	case t.From == t.To:
		text = join(text, 0, "", attr, " = ", e.number(t.From))
	default:
		text = join(text, 0, "", attr, " BETWEEN ", e.number(t.From), " AND ", e.number(t.To))
	}
	if t.OrMissing {
		text = append(text, ')')
	}
	return text
}

// join appends the parts. Unless it is the first, it appends between before them.
func join(text []byte, index int, between string, parts ...string) []byte {
	if index > 0 {
		text = append(text, between...)
	}
	for _, part := range parts {
		text = append(text, part...)
	}
	return text
}
