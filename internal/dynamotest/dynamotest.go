// Package dynamotest gives a test its DynamoDB: an endpoint, a client, a table
// of its own, and a proxy that counts requests and makes them fail.
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
)

// Endpoint is the URL in DYNAMODB_ENDPOINT. Without one the test is skipped,
// except with CI=true, where it fails: there nobody reads what was skipped.
func Endpoint(t testing.TB) string {
	t.Helper()
	endpoint := os.Getenv("DYNAMODB_ENDPOINT")
	if endpoint != "" {
		return endpoint
	}
	const missing = "DYNAMODB_ENDPOINT is not set: run make test, which starts a DynamoDB Local and sets it"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// Client is a plain SDK client of endpoint, on credentials that open nothing.
// It sends each request once.
func Client(t testing.TB, endpoint string) *dynamodb.Client {
	t.Helper()
	cfg := Config(endpoint)
	if c, ok := cfg.HTTPClient.(*http.Client); ok {
		t.Cleanup(c.CloseIdleConnections)
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		// DynamoDB Local sends a wrong checksum with a failed condition, and the SDK logs it each time.
		o.DisableValidateResponseChecksum = true
	})
}

// Table makes an empty table with the project's keys at Endpoint and returns
// its name, which no other test has. It is removed when the test ends. It has
// no TTL: DynamoDB Local would delete by its own clock what a test has made by
// another.
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
		t.Fatalf("make a table for the test: %v", err)
	}
	t.Cleanup(func() { // t.Context has ended by now
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)}); err != nil {
			t.Errorf("remove the test's table: %v", err)
		}
	})
	made := dynamodb.NewTableExistsWaiter(client)
	if err := made.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(name)}, 30*time.Second); err != nil {
		t.Fatalf("wait for the test's table: %v", err)
	}
	return name
}

// newTransport keeps as many connections as a test makes, and goes to no proxy
// that the environment names.
func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     5 * time.Second, // before DynamoDB Local closes them, after 30 s
		DisableCompression:  true,
		// An engine that loses a request fails a test, and doesn't stop it.
		ResponseHeaderTimeout: 30 * time.Second,
	}
}
