package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Create makes the table as template.yaml has it, TTL included, and waits until
// it is there. A table that is there already is left as it is.
func (s *Store) Create(ctx context.Context) error {
	_, err := s.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &s.table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(userID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(activityWindow), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(userID), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(activityWindow), KeyType: types.KeyTypeRange},
		},
	}, patient)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		return nil
	}
	if err != nil {
		return classify(err)
	}
	made := dynamodb.NewTableExistsWaiter(s.client)
	if err := made.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &s.table}, time.Minute); err != nil {
		return classify(err)
	}
	_, err = s.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &s.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(expiresAt), Enabled: aws.Bool(true)},
	}, patient)
	return classify(err)
}
