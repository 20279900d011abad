package dynamohttp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"pgregory.net/rapid"
)

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
	if err != nil {
		t.Fatal(err)
	}
	again := r.Clone(context.Background())
	again.Header.Del("Authorization")
	again.Header.Del("X-Amz-Date")
	again.Header.Del("X-Amz-Security-Token")
	parts := strings.Split(scope.FindString(got), "/")
	n := len(parts) // an access key can contain a slash
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, again, sum(r.body), parts[n-2], parts[n-3], at); err != nil {
		t.Fatal(err)
	}
	if want := again.Header.Get("Authorization"); got != want {
		t.Errorf("the signature is\n%s, want\n%s", got, want)
	}
}

func sum(body []byte) string {
	hash := sha256.Sum256(body)
	return hex.EncodeToString(hash[:])
}
