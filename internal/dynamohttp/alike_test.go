package dynamohttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	. "github.com/cric-talk/guards/internal/dynamohttp"
)

// A recorder notes requests and answers them with answer.
type recorder struct {
	requests []recorded
	answer   func() *http.Response
}

type recorded struct {
	*http.Request

	body []byte
}

// Do implements the SDK's HTTP client.
func (r *recorder) Do(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	r.requests = append(r.requests, recorded{request.Clone(context.Background()), body})
	if r.answer != nil {
		return r.answer(), nil
	}
	return answerOf(http.StatusOK, "{}"), nil
}

func answerOf(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

const readRequest = `{"TableName":"rateLimit","Key":{"userId":{"S":"u1"},"activityWindow":{"S":"act"}},"ConsistentRead":true}`

// get sends the same GetItem through the SDK's client and through this package's.
func get(ctx context.Context, client *dynamodb.Client, lean *Client) (stock, own error) {
	_, stock = client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String("rateLimit"),
		ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{
			"userId":         &types.AttributeValueMemberS{Value: "u1"},
			"activityWindow": &types.AttributeValueMemberS{Value: "act"},
		},
	})
	_, own = lean.Do(ctx, "GetItem", "rateLimit", []byte(readRequest))
	return stock, own
}

// clients returns both clients with the same configuration.
func clients(cfg aws.Config, r *recorder) (*dynamodb.Client, *Client) {
	cfg.HTTPClient = r
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		o.DisableValidateResponseChecksum = true
	})
	return client, New(client)
}

// Requests go to the same endpoint, with the same headers, body and signature as
// the SDK's, whatever the environment sets.
func TestEachRequestIsTheSDKs(t *testing.T) {
	for name, environment := range map[string]map[string]string{
		"a region":                       {},
		"another region":                 {"AWS_REGION": "cn-north-1"},
		"an endpoint":                    {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8000"},
		"an endpoint with a path":        {"AWS_ENDPOINT_URL_DYNAMODB": "https://proxy.example/dynamodb"},
		"an endpoint for all services":   {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"},
		"FIPS":                           {"AWS_USE_FIPS_ENDPOINT": "true"},
		"FIPS region":                    {"AWS_REGION": "fips-us-gov-west-1"},
		"dual-stack":                     {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
		"FIPS and dual-stack":            {"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"},
		"a session token":                {"AWS_SESSION_TOKEN": "token"},
		"an account ID":                  {"AWS_ACCOUNT_ID": "123456789012"},
		"a disabled account ID":          {"AWS_ACCOUNT_ID": "123456789012", "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled"},
		"a required account ID":          {"AWS_ACCOUNT_ID": "123456789012", "AWS_ACCOUNT_ID_ENDPOINT_MODE": "required"},
		"a required but lacking account": {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "required"},
		"an account ID and an endpoint":  {"AWS_ACCOUNT_ID": "123456789012", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8000"},
		"DynamoDB Local's region":        {"AWS_REGION": "local"},
		"no region":                      {"AWS_REGION": ""},
		"a region that is no name":       {"AWS_REGION": "eu/west"},
	} {
		t.Run(name, func(t *testing.T) {
			r := new(recorder)
			client, lean := clients(environmentConfig(t, environment), r)
			stock, own := get(t.Context(), client, lean)
			if (stock == nil) != (own == nil) {
				t.Fatalf("the SDK's error is %v, and this package's %v", stock, own)
			}
			if stock != nil {
				t.Logf("%v\n%v", stock, own)
				if len(r.requests) > 0 {
					t.Errorf("a request was sent")
				}
				return
			}
			if theirs, ours := facts(t, r.requests[0]), facts(t, r.requests[1]); !reflect.DeepEqual(theirs, ours) {
				t.Errorf("the SDK sends\n%v, this package\n%v", theirs, ours)
			}
			checkSignature(t, r.requests[1])
		})
	}
}

// environmentConfig loads the configuration from an environment with these
// variables.
func environmentConfig(t *testing.T, environment map[string]string) aws.Config {
	t.Helper()
	none := t.TempDir() + "/none"
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	for name, value := range environment {
		t.Setenv(name, value)
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// differ are the headers that need not be alike. The SDK's client names itself,
// counts its attempts, and repeats the length, which the HTTP client sends in
// any case.
var differ = []string{"User-Agent", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request", "X-Amz-User-Agent", "Content-Length", "X-Amz-Date", "Authorization"}

var scope = regexp.MustCompile(`Credential=([^,]+)`)

// facts returns what must be alike in two requests.
func facts(t *testing.T, r recorded) map[string]any {
	t.Helper()
	var body any
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Fatal(err)
	}
	header := r.Header.Clone()
	for _, name := range differ {
		header.Del(name)
	}
	path := r.URL.Path
	if path == "" {
		path = "/"
	}
	return map[string]any{
		"method": r.Method, "scheme": r.URL.Scheme, "host": r.URL.Host, "path": path, "query": r.URL.RawQuery,
		"length": r.ContentLength, "header": header, "body": body, "scope": scope.FindString(r.Header.Get("Authorization")),
	}
}

var signedHeaders = regexp.MustCompile(`SignedHeaders=([^,]+)`)

// checkSignature signs a request again and compares. The signature covers each
// header that has a meaning for DynamoDB.
func checkSignature(t *testing.T, r recorded) {
	t.Helper()
	got := r.Header.Get("Authorization")
	signed := strings.Split(signedHeaders.FindStringSubmatch(got)[1], ";")
	for name := range r.Header {
		if name = strings.ToLower(name); name != "authorization" && name != "user-agent" && !slices.Contains(signed, name) {
			t.Errorf("the header %s is not signed", name)
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimPrefix(scope.FindString(got), "Credential="), "/")
	again := r.Clone(t.Context())
	again.Header.Del("Authorization")
	again.Header.Del("X-Amz-Date")
	again.Header.Del("X-Amz-Security-Token")
	credentials := aws.Credentials{AccessKeyID: parts[0], SecretAccessKey: "secret", SessionToken: r.Header.Get("X-Amz-Security-Token")}
	if err := v4.NewSigner().SignHTTP(t.Context(), credentials, again, sum(r.body), parts[3], parts[2], at); err != nil {
		t.Fatal(err)
	}
	if want := again.Header.Get("Authorization"); got != want {
		t.Errorf("the signature is\n%s, want\n%s", got, want)
	}
	if !bytes.Equal(r.body, []byte(readRequest)) {
		t.Errorf("the body is %s", r.body)
	}
}
