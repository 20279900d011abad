package dynamohttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/encoding/httpbinding"
)

// An endpoint is where the requests for one table go, and what their signatures
// name.
type endpoint struct {
	table, accountID string // what it was resolved for
	url              url.URL
	host             string // as it is signed: without the port of its scheme
	path             string // as it is signed: escaped twice
	signingName      string
	signingRegion    string
}

// resolve returns the endpoint of a table. It asks the SDK once, and again if
// the table or the account changes: new credentials can belong to another
// account.
func (c *Client) resolve(ctx context.Context, table string, credentials aws.Credentials) (*endpoint, error) {
	if e := c.endpoint.Load(); e != nil && e.table == table && e.accountID == credentials.AccountID {
		return e, nil
	}
	e, err := resolve(ctx, c.stock, table, credentials)
	if err != nil {
		return nil, err
	}
	c.endpoint.Store(e)
	return e, nil
}

// resolve lets the SDK's client make a request, and takes the endpoint from it
// before it is sent. So each setting that the SDK knows has its effect.
func resolve(ctx context.Context, client *dynamodb.Client, table string, credentials aws.Credentials) (*endpoint, error) {
	e := &endpoint{table: table, accountID: credentials.AccountID}
	_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{}},
		func(o *dynamodb.Options) {
			o.Retryer = aws.NopRetryer{}
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil })
			o.HTTPClient = catcher(e.take)
		})
	switch {
	case !errors.Is(err, errCaught):
		return nil, err
	case e.signingName == "":
		return nil, errors.New("the SDK's signature names no region")
	}
	return e, nil
}

// take copies the endpoint of a request. Its signature begins like this:
//
//	AWS4-HMAC-SHA256 Credential=AKID/20261122/eu-west-1/dynamodb/aws4_request, ...
func (e *endpoint) take(r *http.Request) {
	e.url = *r.URL
	e.host = cmp.Or(r.Host, r.URL.Host)
	e.path = httpbinding.EscapePath(cmp.Or(r.URL.EscapedPath(), "/"), false)
	scope, _, _ := strings.Cut(r.Header.Get("Authorization"), ",")
	parts := strings.Split(scope, "/")
	if n := len(parts); n >= 5 {
		e.signingRegion, e.signingName = parts[n-3], parts[n-2]
	}
}

// A catcher takes each request in place of an HTTP client. It sends nothing.
type catcher func(*http.Request)

// Do implements the SDK's HTTP client.
func (c catcher) Do(r *http.Request) (*http.Response, error) {
	c(r)
	return nil, errCaught
}

var errCaught = errors.New("caught before it was sent")
