package dynamohttp_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp"
	"github.com/cric-talk/guards/internal/testkit"
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
	_, stock = client.GetItem(ctx, readInput())
	_, own = lean.Do(ctx, "GetItem", "rateLimit", []byte(readRequest))
	return stock, own
}

// readInput is readRequest for the SDK's client.
func readInput() *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{
		TableName:      aws.String("rateLimit"),
		ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{
			"userId":         &types.AttributeValueMemberS{Value: "u1"},
			"activityWindow": &types.AttributeValueMemberS{Value: "act"},
		},
	}
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
		"an endpoint with HTTPS's port":  {"AWS_ENDPOINT_URL_DYNAMODB": "https://proxy.example:443"},
		"an endpoint with HTTP's port":   {"AWS_ENDPOINT_URL_DYNAMODB": "http://[::1]:80"},
		"an endpoint with spaces":        {"AWS_ENDPOINT_URL_DYNAMODB": "https://proxy.example/a%20b/(c)"},
		"an endpoint with a query":       {"AWS_ENDPOINT_URL_DYNAMODB": "https://proxy.example/a?b=1&a=2"},
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
			if body := string(r.requests[1].body); body != readRequest {
				t.Errorf("the body is %s", body)
			}
			checkSignature(t, r.requests[1], aws.Credentials{
				AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: environment["AWS_SESSION_TOKEN"],
			})
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
	testkit.OK(t, err)
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
	testkit.OK(t, json.Unmarshal(r.body, &body))
	header := r.Header.Clone()
	for _, name := range differ {
		header.Del(name)
	}
	path := cmp.Or(r.URL.EscapedPath(), "/")
	return map[string]any{
		"method": r.Method, "scheme": r.URL.Scheme, "host": cmp.Or(r.Host, r.URL.Host), "to": r.URL.Host, "path": path, "query": r.URL.RawQuery,
		"length": r.ContentLength, "header": header, "body": body, "scope": scope.FindString(r.Header.Get("Authorization")),
	}
}

const dateFormat = "20060102T150405Z"

// Each request has the signature that the SDK's signer gives it. This holds when
// one client gets other credentials, when the next day begins, and in any time
// zone.
func TestLawEachSignatureIsTheSDKs(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	time.Local = time.FixedZone("", -8*60*60)
	// AWS's rules allow no proxy for a region with "fips" in its name.
	regions := rapid.StringMatching(`[a-z]{2}-[a-z]{4,9}-[1-9]`).Filter(func(name string) bool { return !strings.Contains(name, "fips") })
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.StringMatching(`[A-Za-z0-9/+=]{1,40}`)
		date := rapid.Int64Range(1_600_000_000, 4_000_000_000)
		var credentials aws.Credentials
		var now time.Time
		r := new(recorder)
		r.answer = func() *http.Response {
			answer := answerOf(http.StatusOK, "{}")
			answer.Header.Set("Date", now.UTC().Format(http.TimeFormat))
			return answer
		}
		cfg := aws.Config{
			Region:      regions.Draw(t, "region"),
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil }),
		}
		if path := rapid.StringMatching(`(/[a-zA-Z0-9._~()!-]{0,5}(%20|%2F)?){0,3}`).Draw(t, "path"); path != "" {
			cfg.BaseEndpoint = aws.String("https://proxy.example" + path)
		}
		_, lean := clients(cfg, r)
		for range rapid.IntRange(1, 5).Draw(t, "requests") {
			if credentials.AccessKeyID == "" || rapid.Bool().Draw(t, "other credentials") {
				credentials = aws.Credentials{
					AccessKeyID: words.Draw(t, "access key"), SecretAccessKey: words.Draw(t, "secret key"),
					SessionToken: rapid.OneOf(rapid.Just(""), words, rapid.StringMatching(` ?[a-z]{3}\t? ? ?`)).Draw(t, "token"),
				}
			}
			now = time.Unix(date.Draw(t, "time of DynamoDB"), 0)
			operation := rapid.SampledFrom([]string{"GetItem", "UpdateItem"}).Draw(t, "operation")
			body := rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(t, "body")
			if _, err := lean.Do(context.Background(), operation, "rateLimit", body); err != nil {
				t.Fatal(err)
			}
			last := r.requests[len(r.requests)-1]
			if !bytes.Equal(last.body, body) {
				t.Errorf("the body is %q, want %q", last.body, body)
			}
			checkSignature(t, last, credentials)
		}
	})
}

var signedHeaders = regexp.MustCompile(`SignedHeaders=([^,]+)`)

// checkSignature signs a request again, with the SDK's signer, and compares. The
// signature covers each header that has a meaning for DynamoDB.
func checkSignature(t rapid.TB, r recorded, credentials aws.Credentials) {
	t.Helper()
	got := r.Header.Get("Authorization")
	signed := strings.Split(signedHeaders.FindStringSubmatch(got)[1], ";")
	for name := range r.Header {
		if name = strings.ToLower(name); name != "authorization" && name != "user-agent" && !slices.Contains(signed, name) {
			t.Errorf("the header %s is not signed", name)
		}
	}
	at, err := time.Parse(dateFormat, r.Header.Get("X-Amz-Date"))
	testkit.OK(t, err)
	again := r.Clone(context.Background())
	again.Header.Del("Authorization")
	again.Header.Del("X-Amz-Date")
	again.Header.Del("X-Amz-Security-Token")
	parts := strings.Split(scope.FindString(got), "/")
	n := len(parts) // an access key can contain a slash
	testkit.OK(t, v4.NewSigner().SignHTTP(context.Background(), credentials, again, sum(r.body), parts[n-2], parts[n-3], at))
	if want := again.Header.Get("Authorization"); got != want {
		t.Errorf("the signature is\n%s, want\n%s", got, want)
	}
}

func sum(body []byte) string {
	hash := sha256.Sum256(body)
	return hex.EncodeToString(hash[:])
}
