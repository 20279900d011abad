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

// manyTerms is the number of terms from which attributes get short aliases, so that
// the condition stays below 4,096 bytes.
const manyTerms = 40

// updateInput writes w in DynamoDB's expression language. That language has no
// arithmetic in conditions and rejects redundant parentheses. Every comparison with a
// missing attribute is false.
func updateInput(table string, w ratelimit.Write) *dynamodb.UpdateItemInput {
	e := expression{values: make(map[string]types.AttributeValue, 8), numbers: make(map[int64]string, 8)}
	if len(w.Update.If) == 1 && len(w.Update.If[0]) > manyTerms {
		e.names = make(map[string]string, len(w.Update.If[0]))
		e.aliases = make(map[string]string, len(w.Update.If[0]))
	}
	condition := e.condition(w)
	update := e.update(w)
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

// An expression collects the values and names that its text refers to.
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

// number names n in the text.
func (e *expression) number(n int64) string {
	name, ok := e.numbers[n]
	if !ok {
		name = e.value(number(n))
		e.numbers[n] = name
	}
	return name
}

// condition returns the text of w's ids and guard.
func (e *expression) condition(w ratelimit.Write) string {
	var all []string
	for _, k := range w.LookIn() {
		set, id := e.attr(k.Set), e.value(&types.AttributeValueMemberB{Value: k.ID[:]})
		all = append(all, "(attribute_not_exists("+set+") OR NOT contains("+set+", "+id+"))")
	}
	if drop := w.Drop; drop.Set != "" {
		all = append(all, "contains("+e.attr(drop.Set)+", "+e.value(&types.AttributeValueMemberB{Value: drop.ID[:]})+")")
	}
	if guard := e.guard(w.Update.If, len(all) > 0); guard != "" {
		all = append(all, guard)
	}
	return strings.Join(all, " AND ")
}

// guard joins conjunctions by OR. Beside other conditions it needs parentheses.
func (e *expression) guard(either [][]policy.Term, beside bool) string {
	texts := make([]string, len(either))
	for i, terms := range either {
		texts[i] = e.conjunction(terms, len(either) > 1)
	}
	text := strings.Join(texts, " OR ")
	if len(either) > 1 && beside {
		return "(" + text + ")"
	}
	return text
}

// conjunction joins terms by AND. Beside an OR it needs parentheses.
func (e *expression) conjunction(terms []policy.Term, beside bool) string {
	all := make([]string, len(terms))
	for i, t := range terms {
		all[i] = e.term(t)
	}
	text := strings.Join(all, " AND ")
	if beside && len(all) > 1 {
		return "(" + text + ")"
	}
	return text
}

// term compares an attribute. It leaves out a bound that excludes nothing.
func (e *expression) term(t policy.Term) string {
	attr := e.attr(t.Attr)
	missing := "attribute_not_exists(" + attr + ")"
	comparison := attr
	switch {
	case t.From > t.To:
		return missing
	case t.From == math.MinInt64:
		comparison += " <= " + e.number(t.To)
	case t.To == math.MaxInt64:
		comparison += " >= " + e.number(t.From)
	case t.From == t.To:
		comparison += " = " + e.number(t.From)
	default:
		comparison += " BETWEEN " + e.number(t.From) + " AND " + e.number(t.To)
	}
	if !t.OrMissing {
		return comparison
	}
	return "(" + missing + " OR " + comparison + ")"
}

func (e *expression) update(w ratelimit.Write) string {
	var set, remove, add, drop clause
	if into := w.Into(); into.Set != "" {
		add.append(e.attr(into.Set), " ", e.value(elements(into.Mark)))
	}
	if w.Drop.Set != "" {
		drop.append(e.attr(w.Drop.Set), " ", e.value(elements(w.Drop.Mark)))
	}
	for _, name := range w.Forget() {
		remove.append(name, "", "")
	}
	if w.Expires != 0 {
		set.append(expiresAt, " = ", e.number(w.Expires))
		if w.Key.Window != 0 {
			set.append(activity, " = ", e.value(text(w.Key.Activity)))
			set.append(windowKey, " = ", e.number(w.Key.Window))
			set.append(createdAt, " = if_not_exists("+createdAt+", ", e.number(w.Now)+")")
		}
	}
	for _, a := range w.Update.Acts {
		attr := e.attr(a.Attr)
		switch a.Verb {
		case policy.Add:
			add.append(attr, " ", e.number(a.Value))
		case policy.Set:
			set.append(attr, " = ", e.number(a.Value))
		case policy.Delete:
			remove.append(attr, "", "")
		}
	}
	return strings.TrimSpace(set.text("SET") + remove.text("REMOVE") + add.text("ADD") + drop.text("DELETE"))
}

// A clause is one list of an update expression.
type clause []string

func (c *clause) append(attr, between, value string) { *c = append(*c, attr+between+value) }

// text returns the clause under its keyword, or nothing if it lists nothing.
func (c clause) text(keyword string) string {
	if len(c) == 0 {
		return ""
	}
	return keyword + " " + strings.Join(c, ", ") + " "
}
