package scenarios_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// credentials are the ones that the drivers get.
var credentials = aws.Credentials{AccessKeyID: "AKIDTEST", SecretAccessKey: "secret"}

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKIDTEST/\d{8}/` + region + `/lambda/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

// checkSignature returns what is wrong with a request's signature, or an empty
// text. It signs the request again and compares, as AWS does.
func checkSignature(r *http.Request, body []byte) (problem string) {
	match := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if match == nil {
		return "the header Authorization is not a signature for Lambda: " + r.Header.Get("Authorization")
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return "the time of the signature is " + r.Header.Get("X-Amz-Date")
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), http.NoBody)
	if err != nil {
		return err.Error()
	}
	for name := range strings.SplitSeq(match[1], ";") {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = int64(len(body))
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), "lambda", region, at); err != nil {
		return err.Error()
	}
	if !strings.HasSuffix(again.Header.Get("Authorization"), "Signature="+match[2]) {
		return "the signature is wrong"
	}
	return ""
}
