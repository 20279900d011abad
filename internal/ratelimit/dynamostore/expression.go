package dynamostore

import (
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// updateInput writes w in DynamoDB's expression language, which has no
// arithmetic in conditions, takes no redundant parentheses, and calls every
// comparison with a missing attribute false.
func updateInput(table string, w ratelimit.Write) *dynamodb.UpdateItemInput {
	e := expression{values: make(map[string]types.AttributeValue, 8), numbers: make(map[int64]string, 8)}
	condition := e.condition(w)
	update := e.update(w)
	return &dynamodb.UpdateItemInput{
		TableName:                           &table,
		Key:                                 key(w.Key),
		ConditionExpression:                 &condition,
		UpdateExpression:                    &update,
		ExpressionAttributeValues:           e.values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// An expression collects the values that its text names.
type expression struct {
	values  map[string]types.AttributeValue
	numbers map[int64]string // their names: one number has one
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

func (e *expression) condition(w ratelimit.Write) string {
	counted := e.counted(w)
	if len(w.Update.If) == 0 {
		return counted
	}
	either := make([]string, len(w.Update.If))
	for i, terms := range w.Update.If {
		either[i] = e.conjunction(terms, len(w.Update.If) > 1)
	}
	guard := strings.Join(either, " OR ")
	if len(either) > 1 {
		guard = "(" + guard + ")"
	}
	return counted + " AND " + guard
}

// counted says that the request of w is counted in the item, for a release, or
// that it is not.
func (e *expression) counted(w ratelimit.Write) string {
	id := e.value(&types.AttributeValueMemberB{Value: w.ID[:]})
	in := w.Memory().In
	all := make([]string, len(in))
	for i, name := range in {
		all[i] = "contains(" + name + ", " + id + ")"
		if !w.Release {
			all[i] = "(attribute_not_exists(" + name + ") OR NOT " + all[i] + ")"
		}
	}
	switch {
	case !w.Release:
		return strings.Join(all, " AND ")
	case len(all) == 1:
		return all[0]
	}
	return "(" + strings.Join(all, " OR ") + ")"
}

// conjunction joins terms by AND, in parentheses where it stands beside an OR.
func (e *expression) conjunction(terms []ratelimit.Term, beside bool) string {
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

// term compares an attribute: with one bound where the other excludes nothing.
func (e *expression) term(t ratelimit.Term) string {
	missing := "attribute_not_exists(" + t.Attr + ")"
	comparison := t.Attr
	switch {
	case t.From > t.To:
		return missing
	case t.From == math.MinInt64:
		comparison += " <= " + e.number(t.To)
	case t.To == math.MaxInt64:
		comparison += " >= " + e.number(t.From)
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
	m := w.Memory()
	switch {
	case w.Release:
		id := e.value(binary(w.ID))
		for _, name := range m.In {
			drop.append(name, " ", id)
		}
	case w.Ordered:
		set.append(m.Into, " = list_append(if_not_exists("+m.Into+", "+e.value(list())+"), ", e.value(list(w.ID))+")")
	default:
		add.append(m.Into, " ", e.value(binary(w.ID)))
	}
	if !w.Release {
		for _, name := range m.Forget {
			remove.append(name, "", "")
		}
		set.append(expiresAt, " = ", e.number(w.Expires))
		if w.Key.Window != 0 {
			set.append(activity, " = ", e.value(text(w.Key.Activity)))
			set.append(windowKey, " = ", e.number(w.Key.Window))
			set.append(createdAt, " = if_not_exists("+createdAt+", ", e.number(w.Now)+")")
		}
	}
	for _, a := range w.Update.Acts {
		switch a.Verb {
		case ratelimit.Add:
			add.append(a.Attr, " ", e.number(a.Value))
		case ratelimit.Set:
			set.append(a.Attr, " = ", e.number(a.Value))
		case ratelimit.Delete:
			remove.append(a.Attr, "", "")
		}
	}
	return strings.TrimSpace(set.text("SET") + remove.text("REMOVE") + add.text("ADD") + drop.text("DELETE"))
}

// A clause is one list of an update expression.
type clause []string

func (c *clause) append(attr, between, value string) { *c = append(*c, attr+between+value) }

// text is the clause under its keyword; nothing where it lists nothing.
func (c clause) text(keyword string) string {
	if len(c) == 0 {
		return ""
	}
	return keyword + " " + strings.Join(c, ", ") + " "
}
