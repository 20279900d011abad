package dynamotest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// A Wire answers requests instead of a table. DynamoDB Local is always consistent
// and keeps its own time, so some tests cannot use it. Op is the operation, such
// as GetItem, and body is the request. An answer that begins with {"__type" is an
// error, with status 400.
type Wire func(op string, body map[string]any) (answer string)

// Do implements the SDK's HTTP client.
func (w Wire) Do(r *http.Request) (*http.Response, error) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	answer, status := w(operation(r), body), http.StatusOK
	if strings.HasPrefix(answer, `{"__type"`) {
		status = http.StatusBadRequest
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// Config returns the configuration of a client that w answers.
func (w Wire) Config() aws.Config {
	cfg := Config("http://table.invalid")
	cfg.HTTPClient = w
	return cfg
}
