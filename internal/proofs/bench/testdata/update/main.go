// Update is a Lambda function that only makes one UpdateItem with the SDK's
// client. The benchmarks compare a guard with it. If SIGTERM is set, it also asks
// Lambda for that signal, as a guard does.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type event struct {
	UserID string `json:"userId"`
}

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		panic(err)
	}
	client, table := dynamodb.NewFromConfig(cfg), os.Getenv("TABLE_NAME")
	var options []lambda.Option
	if os.Getenv("SIGTERM") != "" {
		options = append(options, lambda.WithEnableSIGTERM(func() { os.Exit(0) }))
	}
	lambda.StartWithOptions(func(ctx context.Context, e event) (json.RawMessage, error) {
		_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &table,
			Key: map[string]types.AttributeValue{
				"userId":         &types.AttributeValueMemberS{Value: e.UserID},
				"activityWindow": &types.AttributeValueMemberS{Value: "bare#28333333"},
			},
			UpdateExpression:          aws.String("ADD activityCount :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "1"}},
		})
		return json.RawMessage(`{"allowed":true}`), err
	}, options...)
}
