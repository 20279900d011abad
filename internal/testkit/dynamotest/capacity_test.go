package dynamotest

import "testing"

func TestUnitsAreReadFromTheResponse(t *testing.T) {
	t.Parallel()
	const deletes = `{"Statements":[{"Statement":"DELETE FROM \"t\" WHERE userId = ?"}]}`
	for _, test := range []struct {
		op, request, response string
		want                  units
	}{
		{"UpdateItem", `{}`, `{"ConsumedCapacity":{"TableName":"t","CapacityUnits":2.0}}`, units{write: 2}},
		{"UpdateItem", `{}`, `{"Attributes":{"ConsumedCapacity":{"M":{"CapacityUnits":{"N":"7"}}}}}`, units{}},
		{"UpdateItem", `{}`, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Item":{}}`, units{write: 1}},
		{"UpdateItem", `{}`, `{"__type":"com.amazon.coral.validate#ValidationException"}`, units{}},
		{"UpdateItem", `{}`, `no JSON`, units{}},
		{"Scan", `{}`, `{"Items":[],"ConsumedCapacity":{"CapacityUnits":0.5}}`, units{read: 0.5}},
		{"BatchGetItem", `{}`, `{"ConsumedCapacity":[{"CapacityUnits":1},{"CapacityUnits":0.5}]}`, units{read: 1.5}},
		{"BatchExecuteStatement", deletes, `{"ConsumedCapacity":[{"CapacityUnits":25}]}`, units{write: 25}},
		{"BatchExecuteStatement", `{"Statements":[{"Statement": " select * from t"}]}`, `{"ConsumedCapacity":[{"CapacityUnits":1}]}`, units{read: 1}},
		{"ExecuteStatement", `{"Statement":"SELECT * FROM t"}`, `{"ConsumedCapacity":{"CapacityUnits":1}}`, units{read: 1}},
		{"TransactWriteItems", `{}`, `{"ConsumedCapacity":[{"CapacityUnits":3,"ReadCapacityUnits":1,"WriteCapacityUnits":2}]}`, units{read: 1, write: 2}},
		{"DescribeTable", `{}`, `{"ConsumedCapacity":{"CapacityUnits":1}}`, units{}},
	} {
		if got := unitsOf(test.op, []byte(test.request), []byte(test.response)); got != test.want {
			t.Errorf("unitsOf(%s, %s, %s) is %+v, want %+v", test.op, test.request, test.response, got, test.want)
		}
	}
}
