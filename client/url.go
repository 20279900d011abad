package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// post asks the guard by its Function URL.
func (g *Guards) post(ctx context.Context, c *call) (Decision, error) {
	request, err := c.sign(ctx)
	if err != nil {
		return Decision{}, err
	}
	response, err := g.sender.Do(request)
	if err != nil {
		return Decision{}, c.unreachable(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if is[*http.MaxBytesError](err) && response.StatusCode >= 300 {
		body, err = nil, nil // the status is enough
	}
	if err != nil {
		return Decision{}, c.unreadable(ctx, err)
	}
	d, err := c.readResponse(response, body)
	d.Date, _ = http.ParseTime(response.Header.Get("Date")) // the zero time if there is none
	return d, err
}

// sign returns the request, signed with the call's credentials.
func (c *call) sign(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.payload))
	if err != nil {
		return nil, c.notInvoked(err, err.Error())
	}
	request.Header.Set("Content-Type", "application/json")
	if c.keys == nil {
		return request, nil
	}
	region := c.region
	if match := ofURL.FindStringSubmatch(request.URL.Host); match != nil { // the URL may be in another one than the app
		region = match[1]
	}
	sum := sha256.Sum256(c.payload)
	err = v4.NewSigner().SignHTTP(ctx, *c.keys, request, hex.EncodeToString(sum[:]), "lambda", region, time.Now())
	if err != nil {
		return nil, c.notInvoked(err, err.Error())
	}
	return request, nil
}

// ofURL finds the region in the host of a Function URL.
var ofURL = regexp.MustCompile(`\.lambda-url\.([a-z0-9-]+)\.on\.aws$`)

// readResponse reads a Function URL's response.
func (c *call) readResponse(response *http.Response, body []byte) (Decision, error) {
	status := response.StatusCode
	if status == http.StatusOK {
		return c.readAnswer(body)
	}
	var problem struct {
		Allowed   *bool  `json:"allowed"`
		ErrorType string `json:"errorType"`
		Detail    string `json:"detail"`
		Message   string `json:"message"` // of Lambda itself
	}
	_ = json.Unmarshal(body, &problem) // a body of another form has no such fields
	switch {
	case status == http.StatusTooManyRequests && problem.Allowed != nil:
		return c.readAnswer(body)
	case status == http.StatusBadRequest && problem.ErrorType == "ValidationError":
		return Decision{}, c.validation(first(maxText, problem.Detail)) // a guard never shows an id
	case status == http.StatusServiceUnavailable && problem.ErrorType == "Unavailable":
		return Decision{}, c.unavailable(c.foreign(problem.Detail))
	case status >= 200 && status < 300:
		return Decision{}, c.noAnswer(string(body))
	}
	code, _, _ := strings.Cut(response.Header.Get("X-Amzn-Errortype"), ":")
	if code == "" {
		code = statusCode(status)
	}
	return Decision{}, c.refused(refusal{status, code, problem.Message}, nil)
}
