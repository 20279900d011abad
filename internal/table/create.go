package table

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// Create creates the table as template.yaml describes it, with TTL, and waits
// until it can be used. It does not change a table that exists already.
func (d *DynamoDB) Create(ctx context.Context) error {
	_, err := d.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &d.table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(userID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(activityWindow), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(userID), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(activityWindow), KeyType: types.KeyTypeRange},
		},
	}, Patient)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		return nil
	}
	if err != nil {
		return dynamostore.Classify(err)
	}
	created := dynamodb.NewTableExistsWaiter(d.client)
	if err := created.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &d.table}, time.Minute); err != nil {
		return dynamostore.Classify(err)
	}
	_, err = d.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &d.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(expiresAt), Enabled: aws.Bool(true)},
	}, Patient)
	return dynamostore.Classify(err)
}
