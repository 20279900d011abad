// Package dynamotest gives tests a DynamoDB to work with: an endpoint, a
// client, a table for one test, and a proxy that counts requests and makes them
// fail.
package dynamotest

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/testkit"
)

// Endpoint returns the URL in DYNAMODB_ENDPOINT. If the variable is not set, it
// skips the test. With CI=true it fails the test instead, because nobody would
// notice a skipped test there.
func Endpoint(t testing.TB) string {
	t.Helper()
	return EndpointIn(t, "DYNAMODB_ENDPOINT", "a DynamoDB Local")
}

// EndpointIn is like Endpoint, for another variable and the server whose URL it
// has.
func EndpointIn(t testing.TB, variable, server string) string {
	t.Helper()
	endpoint := os.Getenv(variable)
	if endpoint != "" {
		return endpoint
	}
	testkit.Skip(t, variable+" is not set: run make test, which starts "+server+" and sets it")
	return ""
}

// Client returns an SDK client for endpoint, with made-up credentials. It sends
// each request once.
func Client(t testing.TB, endpoint string) *dynamodb.Client {
	t.Helper()
	cfg := Config(endpoint)
	if c, ok := cfg.HTTPClient.(*http.Client); ok {
		t.Cleanup(c.CloseIdleConnections)
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		// DynamoDB Local sends a wrong checksum with a failed condition, and
		// the SDK would log each of them.
		o.DisableValidateResponseChecksum = true
	})
}

// Table creates an empty table at Endpoint, with the project's keys, and
// returns its unique name. The table is deleted when the test ends. It has no
// TTL: DynamoDB Local goes by the real time and would delete items of tests
// that use another clock.
func Table(t testing.TB) string {
	t.Helper()
	client := Client(t, Endpoint(t))
	name := "guards-test-" + rand.Text()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("userId"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("activityWindow"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("userId"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("activityWindow"), KeyType: types.KeyTypeRange},
		},
	})
	if err != nil {
		t.Fatalf("create the test's table: %v", err)
	}
	t.Cleanup(func() { // t.Context is done by now
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)}); err != nil {
			t.Errorf("delete the test's table: %v", err)
		}
	})
	made := dynamodb.NewTableExistsWaiter(client)
	if err := made.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(name)}, time.Minute); err != nil {
		t.Fatalf("wait for the test's table: %v", err)
	}
	return name
}

// newTransport returns a transport that keeps all connections of a test open
// and ignores the proxy settings of the environment.
func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     5 * time.Second, // DynamoDB Local closes them after 30 s
		DisableCompression:  true,
		// If the server loses a request, the test fails instead of hanging. A
		// busy machine can stand still for many seconds.
		ResponseHeaderTimeout: time.Minute,
	}
}
