package dynamohttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func keys(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
}

// Credentials that have expired are replaced. The new ones may belong to another
// account, whose endpoint then applies.
func TestNewCredentialsAreUsed(t *testing.T) {
	n := 0
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		n++
		return aws.Credentials{
			AccessKeyID: fmt.Sprint("AKID", n), SecretAccessKey: "secret", SessionToken: fmt.Sprint("token", n),
			AccountID: fmt.Sprintf("%012d", n), CanExpire: true, Expires: time.Now().Add(-time.Second),
		}, nil
	})
	r := new(recorder)
	cfg := aws.Config{Region: "eu-west-1", Credentials: aws.NewCredentialsCache(provider), AccountIDEndpointMode: aws.AccountIDEndpointModePreferred}
	_, lean := clients(cfg, r)
	for i := range 3 {
		if _, err := lean.Do(t.Context(), "GetItem", "rateLimit", []byte(readRequest)); err != nil {
			t.Fatal(err)
		}
		got := r.requests[i]
		key, token, host := fmt.Sprintf("Credential=AKID%d/", i+1), fmt.Sprint("token", i+1), fmt.Sprintf("%012d.ddb.eu-west-1.amazonaws.com", i+1)
		if !strings.Contains(got.Header.Get("Authorization"), key) || got.Header.Get("X-Amz-Security-Token") != token || got.URL.Host != host {
			t.Errorf("request %d goes to %s with %v, want %s with %s and %s", i, got.URL.Host, got.Header, host, key, token)
		}
	}
}

// Each error has the type and the code of the SDK's error.
func TestErrorsAreTheSDKs(t *testing.T) {
	for name, answer := range map[string]func() *http.Response{
		"an error": func() *http.Response {
			return answerOf(400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`)
		},
		"a capital M": func() *http.Response {
			return answerOf(400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}`)
		},
		"an unknown error":  func() *http.Response { return answerOf(400, `{"__type":"NewException","message":"new"}`) },
		"an address behind": func() *http.Response { return answerOf(400, `{"__type":"ThrottlingException:http://amazon.com"}`) },
		"no type":           func() *http.Response { return answerOf(500, `{}`) },
		"no body":           func() *http.Response { return answerOf(503, ``) },
		"HTML":              func() *http.Response { return answerOf(502, `<html>`) },
		"a header": func() *http.Response {
			a := answerOf(400, `{"message":"slow down"}`)
			a.Header.Set("X-Amzn-Errortype", "ThrottlingException:")
			return a
		},
		"an answer cut short": func() *http.Response {
			a := answerOf(200, `{"Item":`)
			a.ContentLength = 100
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, lean := clients(aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(keys)}, &recorder{answer: answer})
			stock, own := get(t.Context(), client, lean)
			if theirs, ours := kind(stock), kind(own); theirs != ours {
				t.Errorf("the SDK's error is %s, and this package's %s: %v", theirs, ours, own)
			}
		})
	}
}

// kind shows what an error is to a caller that examines it.
func kind(err error) string {
	text := ""
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		text += fmt.Sprint("status ", e.HTTPStatusCode(), " ")
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		text += e.ErrorCode() + " " + strings.TrimPrefix(e.ErrorMessage(), "UnknownError") // the SDK's text if there is none
	}
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		text += "unreadable"
	}
	return text
}
