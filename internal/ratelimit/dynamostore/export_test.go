package dynamostore

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// Key is the key of an item in the table.
var Key = key

// UpdateInput is what Update sends, as the SDK's client takes it.
func UpdateInput(table string, w ratelimit.Write) *dynamodb.UpdateItemInput {
	var in struct {
		dynamodb.UpdateItemInput

		Key, ExpressionAttributeValues map[string]attribute
	}
	if err := json.Unmarshal(updateBody(table, w), &in); err != nil {
		panic(err)
	}
	in.UpdateItemInput.Key = attributes(in.Key)
	in.UpdateItemInput.ExpressionAttributeValues = attributes(in.ExpressionAttributeValues)
	return &in.UpdateItemInput
}

// An attribute is an attribute in JSON.
type attribute struct {
	S, N *string
	B    []byte
	BS   [][]byte
}

func attributes(list map[string]attribute) map[string]types.AttributeValue {
	if list == nil {
		return nil
	}
	values := make(map[string]types.AttributeValue, len(list))
	for name, a := range list {
		switch {
		case a.S != nil:
			values[name] = Text(*a.S)
		case a.N != nil:
			values[name] = &types.AttributeValueMemberN{Value: *a.N}
		case a.B != nil:
			values[name] = &types.AttributeValueMemberB{Value: a.B}
		case a.BS != nil:
			values[name] = &types.AttributeValueMemberBS{Value: a.BS}
		default:
			panic(fmt.Sprintf("%s has no value", name))
		}
	}
	return values
}
