package dynamotest

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Config returns the SDK configuration of a client that calls endpoint. Its
// credentials are made up.
func Config(endpoint string) aws.Config {
	return aws.Config{
		BaseEndpoint: aws.String(endpoint),
		Region:       "us-east-1",
		Credentials:  madeUp,
		HTTPClient:   &http.Client{Transport: newTransport()},
	}
}

// madeUp provides credentials that nobody checks.
var madeUp = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
})
