package dynamotest

import (
	"regexp"
	"strings"

	"github.com/cric-talk/guards/internal/strictjson"
)

// units is consumed capacity.
type units struct{ read, write float64 }

// metered holds the operations that report their capacity: true for those that
// only read. For the PartiQL operations it depends on the statements: in one
// request either all read or all write.
var metered = map[string]bool{
	"GetItem": true, "BatchGetItem": true, "TransactGetItems": true, "Query": true, "Scan": true,
	"PutItem": false, "UpdateItem": false, "DeleteItem": false, "BatchWriteItem": false, "TransactWriteItems": false,
	"ExecuteStatement": false, "BatchExecuteStatement": false, "ExecuteTransaction": false,
}

var selects = regexp.MustCompile(`(?i)"Statement":\s*"\s*SELECT\b`)

// askForCapacity returns the request body with ReturnConsumedCapacity added. It
// doesn't change a body that is not a JSON object, nor one that already asks
// for more detail.
func askForCapacity(op string, body []byte) []byte {
	var members map[string]strictjson.Value
	if _, ok := metered[op]; !ok || strictjson.Unmarshal(body, &members) != nil || members == nil {
		return body
	}
	if string(members["ReturnConsumedCapacity"]) == `"INDEXES"` {
		return body
	}
	members["ReturnConsumedCapacity"] = strictjson.Value(`"TOTAL"`)
	return marshal(members)
}

// unitsOf returns what a request cost, according to its response.
func unitsOf(op string, request, response []byte) units {
	var reply struct {
		Type             string `json:"__type"`
		ConsumedCapacity strictjson.Value
	}
	reads, ok := metered[op]
	if !ok || strictjson.Unmarshal(response, &reply) != nil {
		return units{}
	}
	if strings.HasSuffix(reply.Type, "#ConditionalCheckFailedException") {
		return units{write: 1}
	}
	list := reply.ConsumedCapacity // an object, or a list with an object for each table
	switch {
	case len(list) == 0:
		return units{}
	case list.Kind() == '{':
		list = strictjson.Value("[" + string(list) + "]")
	}
	var consumed []struct{ CapacityUnits, ReadCapacityUnits, WriteCapacityUnits float64 }
	if strictjson.Unmarshal(list, &consumed) != nil {
		return units{}
	}
	reads = reads || selects.Match(request)
	var sum units
	for _, c := range consumed {
		switch {
		case c.ReadCapacityUnits+c.WriteCapacityUnits > 0: // some operations report both
			sum.read += c.ReadCapacityUnits
			sum.write += c.WriteCapacityUnits
		case reads:
			sum.read += c.CapacityUnits
		default:
			sum.write += c.CapacityUnits
		}
	}
	return sum
}

// marshal encodes a value that is made of valid JSON.
func marshal(v any) []byte {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
