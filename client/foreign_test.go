package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
)

// No message contains an id, although each text from outside has both, in each
// form that JSON can give them.
func TestNothingNamesTheUser(t *testing.T) {
	const user, id = `user<"1"\&2>`, `request"1"`
	echo := user + " as " + id
	var plain strings.Builder // without the escapes of HTML
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(echo); err != nil {
		t.Fatal(err)
	}
	html, err := json.Marshal(echo)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 10_000) + echo
	crash := func(kind string) reply {
		payload, err := json.Marshal(map[string]string{"errorType": kind, "errorMessage": echo})
		if err != nil {
			t.Fatal(err)
		}
		return functionFails(payload)
	}
	replies := map[string]reply{
		"silence":               silent,
		"an error of Lambda":    byLambda(503, echo, echo),
		"a mistake":             byLambda(400, "X", echo),
		"a mistake's code":      byLambda(400, echo, "X"),
		"a connection":          broken(errors.New(echo)),
		"a long text":           broken(errors.New(long)),
		"unavailable":           crash("Unavailable"),
		"a kind of crash":       crash(echo),
		"a long kind of crash":  crash(long),
		"no answer":             body(echo),
		"the end of an excerpt": body(strings.Repeat("x", 95) + " " + echo),
		"no answer, JSON":       body(`{"for":` + plain.String() + `}`),
		"no answer, HTML":       body(`{"for":` + string(html) + `}`),
		"unavailable, in JSON":  functionError("Unavailable", strings.TrimSpace(plain.String())),
		"unavailable, for HTML": functionError("Unavailable", string(html)),
	}
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := with(t, client.Options{MaxTries: 1}, reply)
				_, err := g.Status(t.Context(), "create_post", client.Request{UserID: user, RequestID: id})
				checkNamesNobody(t, err, "user", "request")
			})
		})
	}
	for status, kind := range map[int]string{http.StatusServiceUnavailable: "Unavailable", http.StatusTeapot: "X"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			problem, err := json.Marshal(map[string]string{"errorType": kind, "detail": echo, "message": echo})
			if err != nil {
				t.Fatal(err)
			}
			g, _ := byURL(t, anyKeys, respond(status, "", string(problem)))
			_, err = g.Status(t.Context(), "create_post", client.Request{UserID: user, RequestID: id})
			checkNamesNobody(t, err, "user", "request")
		})
	}
}

// A short id is hidden only as a whole word, and one of 8 characters inside a word, too.
// An id may look like what hides it. The guard's own sentence about bad input is not
// changed at all: it never shows an id.
func TestAShortIDGarblesNoMessage(t *testing.T) {
	const sentence = `count is "x", want a whole number of at least 1`
	const echo, hidden = `a man, A-a: {"a":"a"} 1a a1 (a)`, `*** man, A-***: {"***":"***"} 1a a1 (***)`
	for _, tt := range []struct {
		id    string
		reply reply
		want  string // in the message
	}{
		{"a", functionError("ValidationError", sentence), sentence},
		{"a", functionError("Unavailable", echo), hidden},
		{"a", byLambda(400, "Bad", echo), hidden},
		{"abcdefg", functionError("Unavailable", "xabcdefg abcdefg"), ": xabcdefg ***"},
		{"abcdefgh", functionError("Unavailable", "xabcdefgh abcdefgh"), ": x*** ***"},
		{"*", functionError("Unavailable", "x* *"), ": x* ***"},
	} {
		g, _ := with(t, client.Options{MaxTries: 1}, tt.reply)
		if _, err := g.Status(t.Context(), "create_post", client.Request{UserID: tt.id}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.id, err, tt.want)
		}
	}
	g, _ := byURL(t, anyKeys, respond(http.StatusBadRequest, "", `{"errorType":"ValidationError","detail":"want a whole number"}`))
	if _, err := g.Status(t.Context(), "create_post", client.Request{UserID: "a"}); err == nil || !strings.HasSuffix(err.Error(), "want a whole number") {
		t.Errorf("by URL: %v", err)
	}
}

// checkNamesNobody checks that an error has a message of reasonable length
// without these words.
func checkNamesNobody(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if strings.Contains(strings.ReplaceAll(err.Error(), "lambda:", ""), word) || len(err.Error()) > 700 {
			t.Errorf("%d characters: %.700v", len(err.Error()), err)
		}
	}
}

func functionFails(payload []byte) reply {
	out := &lambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: payload}
	return func(context.Context) (*lambda.InvokeOutput, error) { return out, nil }
}
