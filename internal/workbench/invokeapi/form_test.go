package invokeapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// AWS sends the names of headers in lower case.
func TestHeadersOfAnEventAreInLowerCase(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/posts-guard", http.NoBody)
	r.Header.Set("Content-Type", "application/json")
	if e := formEvent(r, "1", nil); len(e.Headers) != 1 || e.Headers["content-type"] != "application/json" {
		t.Errorf("the headers are %v", e.Headers)
	}
}
