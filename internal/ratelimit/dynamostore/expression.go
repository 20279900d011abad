package dynamostore

import (
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
	e := expression{values: make(map[string]types.AttributeValue, 8)}
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
	values map[string]types.AttributeValue
}

// value names v in the text.
func (e *expression) value(v types.AttributeValue) string {
	name := ":v" + strconv.Itoa(len(e.values))
	e.values[name] = v
	return name
}

func (e *expression) condition(w ratelimit.Write) string {
	counted := "contains(" + ids + ", " + e.value(&types.AttributeValueMemberB{Value: w.ID[:]}) + ")"
	if !w.Release {
		counted = "(attribute_not_exists(" + ids + ") OR NOT " + counted + ")"
	}
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

// term compares an attribute; one that is missing reads as 0.
func (e *expression) term(t ratelimit.Term) string {
	op := " <= "
	if t.Op == ratelimit.Above {
		op = " > "
	}
	comparison := t.Attr + op + e.value(number(t.Value))
	if !t.Holds(0) {
		return comparison
	}
	return "(attribute_not_exists(" + t.Attr + ") OR " + comparison + ")"
}

func (e *expression) update(w ratelimit.Write) string {
	var set, remove, add, drop clause
	if w.Release {
		drop.append(ids, " ", e.value(binary(w.ID)))
	} else {
		add.append(ids, " ", e.value(binary(w.ID)))
		set.append(activity, " = ", e.value(text(w.Key.Activity)))
		set.append(windowKey, " = ", e.value(number(w.Key.Window)))
		set.append(createdAt, " = if_not_exists("+createdAt+", ", e.value(number(w.Now))+")")
		set.append(expiresAt, " = ", e.value(number(w.Expires)))
	}
	for _, a := range w.Update.Acts {
		switch a.Verb {
		case ratelimit.Add:
			add.append(a.Attr, " ", e.value(number(a.Value)))
		case ratelimit.Set:
			set.append(a.Attr, " = ", e.value(number(a.Value)))
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
