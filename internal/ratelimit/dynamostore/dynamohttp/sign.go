package dynamohttp

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// sign adds the headers that show who sends a request. They are AWS's Signature
// Version 4:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
//
// It signs only what this package sends: a POST with a body, without a query, and
// with the headers below. The SDK's signer takes any request, and needs twice the
// CPU and the allocations. Tests compare the two.
func (c *Client) sign(header http.Header, body []byte, credentials aws.Credentials, to *endpoint, now time.Time) {
	const before, after = "accept-encoding;content-length;content-type;host;x-amz-date;", "x-amz-target"
	at := now.UTC().Format("20060102T150405Z")
	header["X-Amz-Date"] = []string{at}
	signed, token := before+after, ""
	if t := strings.TrimSpace(credentials.SessionToken); t != "" {
		header["X-Amz-Security-Token"] = []string{t}
		signed, token = before+"x-amz-security-token;"+after, "x-amz-security-token:"+t+"\n"
	}
	canonical := http.MethodPost + "\n" + to.path + "\n" + "\n" +
		"accept-encoding:" + header["Accept-Encoding"][0] + "\n" +
		"content-length:" + strconv.Itoa(len(body)) + "\n" +
		"content-type:" + header["Content-Type"][0] + "\n" +
		"host:" + to.host + "\n" +
		"x-amz-date:" + at + "\n" + token +
		"x-amz-target:" + header["X-Amz-Target"][0] + "\n" +
		"\n" + signed + "\n" + hexSHA256(body)

	key := c.signingKey(credentials.SecretAccessKey, at[:len("20060102")], to)
	signature := mac(key.key, "AWS4-HMAC-SHA256\n"+at+"\n"+key.scope+"\n"+hexSHA256([]byte(canonical)))
	header["Authorization"] = []string{"AWS4-HMAC-SHA256 Credential=" + credentials.AccessKeyID + "/" + key.scope +
		", SignedHeaders=" + signed + ", Signature=" + hex.EncodeToString(signature)}
}

// A signingKey, derived from a secret key, signs one day's requests to an endpoint.
type signingKey struct {
	secret, day string
	to          *endpoint
	scope       string // 20261122/eu-west-1/dynamodb/aws4_request
	key         []byte
}

// signingKey returns the key for a day, such as 20261122. It derives the key once,
// and again if the day, the secret key or the endpoint changes.
func (c *Client) signingKey(secret, day string, to *endpoint) *signingKey {
	if k := c.key.Load(); k != nil && k.secret == secret && k.day == day && k.to == to {
		return k
	}
	const last = "aws4_request"
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, to.signingRegion, to.signingName, last} {
		key = mac(key, part)
	}
	k := &signingKey{secret, day, to, day + "/" + to.signingRegion + "/" + to.signingName + "/" + last, key}
	c.key.Store(k)
	return k
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSHA256(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// An endpoint is where the requests for a table go, and what their signatures name.
type endpoint struct {
	table, accountID string // what it was resolved for
	url              url.URL
	host             string // as it is signed: without the port of its scheme
	path             string // as it is signed: escaped twice
	signingName      string
	signingRegion    string
}

// resolve returns the endpoint of a table. The SDK's client makes a request, and
// resolve takes the endpoint from it before it is sent. So each setting that the
// SDK knows has its effect. It does so once, and again if the table or the account
// changes: new credentials can belong to another account.
func (c *Client) resolve(ctx context.Context, table string, credentials aws.Credentials) (*endpoint, error) {
	if e := c.endpoint.Load(); e != nil && e.table == table && e.accountID == credentials.AccountID {
		return e, nil
	}
	e := &endpoint{table: table, accountID: credentials.AccountID}
	// &table instead of aws.String(table) would allocate in each call, also in one
	// that finds the endpoint.
	_, err := c.stock.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(table), Key: map[string]types.AttributeValue{}},
		func(o *dynamodb.Options) {
			o.Retryer = aws.NopRetryer{}
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil })
			o.HTTPClient = smithyhttp.ClientDoFunc(func(r *http.Request) (*http.Response, error) {
				e.take(r)
				return nil, errCaught
			})
		})
	switch {
	case !errors.Is(err, errCaught):
		return nil, err
	case e.signingName == "":
		return nil, errors.New("the SDK's signature names no region")
	}
	c.endpoint.Store(e)
	return e, nil
}

var errCaught = errors.New("caught before it was sent")

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
