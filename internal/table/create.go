package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// Create creates the table as template.yaml describes it, with TTL, and waits
// until it can be used. If the table exists already, Create changes nothing but
// TTL: an earlier run may have stopped before it turned TTL on.
func (d *DynamoDB) Create(ctx context.Context) error {
	_, err := d.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &d.table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(dynamostore.UserID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(dynamostore.ActivityWindow), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(dynamostore.UserID), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(dynamostore.ActivityWindow), KeyType: types.KeyTypeRange},
		},
	}, Patient)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); err != nil && !exists {
		return dynamostore.Classify(err)
	}
	created := dynamodb.NewTableExistsWaiter(d.client)
	if err := created.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &d.table}, time.Minute); err != nil {
		return fmt.Errorf("wait for the table %s: %w", d.table, err)
	}
	return d.expire(ctx)
}

// expire turns TTL on, unless it is on or about to be.
func (d *DynamoDB) expire(ctx context.Context) error {
	now, err := d.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &d.table}, Patient)
	if err != nil {
		return dynamostore.Classify(err)
	}
	if ttl := now.TimeToLiveDescription; ttl != nil && ttl.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		return nil
	}
	_, err = d.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &d.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(dynamostore.ExpiresAt), Enabled: aws.Bool(true)},
	}, Patient)
	return dynamostore.Classify(err)
}
