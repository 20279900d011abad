package scenarios_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// In these scenarios the credentials come from a source, as they do in a
// container. A source that never gave any is a mistake. One that fails later is an
// outage.
var sources = []scenario{
	one(scenario{name: "slow credentials", invoke: true, url: true, noAgent: noAWS, env: from("slow"), options: map[string]any{"decisionTimeout": 200}, counted: 1}, step{requests: -1, answer: `{"allowed":true,"outage":null}`}),
	one(scenario{name: "a source of credentials that fails", invoke: true, url: true, noAgent: noAWS, mistake: true, env: from("failing")}, step{requests: 0, class: "ConfigurationError", message: "*"}),
	{name: "credentials that can't be renewed", invoke: true, noAgent: noAWS, env: from("short"), counted: 1, steps: []step{
		{call: check, requests: 1, answer: fine},
		{pause: shortLife + time.Second, sourceFails: true, call: check, requests: 0, answer: lost},
	}},
}

// from returns the environment of a driver that gets its credentials from a
// source of this name; see source.
func from(source string) map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": fromSource + source,
	}
}

// fromSource, at the beginning of a variable's value, stands for the address of
// the sources.
const fromSource = "source "

// shortLife is how long credentials of the source short can be used. Until then,
// some SDKs use them even if the source fails.
const shortLife = 5 * time.Second

// secret is in the message of a source that fails.
const secret = "about the credentials"

// source answers as the source of credentials in a container does:
//
//	slow     after 0.8 s; an SDK may give up after 1 s
//	failing  always with an error
//	short    with credentials that live for shortLife, until expect says that it fails
func (c *cloud) source(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	fails := c.sourceFails
	c.mu.Unlock()
	expires := time.Now().Add(time.Hour)
	switch r.PathValue("name") {
	case "slow":
		time.Sleep(800 * time.Millisecond)
	case "failing":
		fails = true
	case "short":
		expires = time.Now().Add(shortLife)
	}
	if fails {
		http.Error(w, `{"code":"InternalFailure","message":"`+secret+`"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"AccessKeyId": credentials.AccessKeyID, "SecretAccessKey": credentials.SecretAccessKey,
		"Token": "token", "Expiration": expires.UTC().Format(time.RFC3339),
	})
}

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
