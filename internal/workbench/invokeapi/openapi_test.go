package invokeapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A client that a tool makes of openapi.json asks the document's address for guards serve,
// followed by its path. Most tools join the two as they stand, and so does this test; some
// leave out the slash at the end.
func TestTheAddressInOpenAPILeadsToAGuard(t *testing.T) {
	var document struct {
		Servers []struct {
			URL       string
			Variables map[string]struct{ Default string }
		}
		Paths map[string]struct{ Post any }
	}
	testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile("../../../schema/openapi.json"))(t), &document))
	answers := handler(func(context.Context) ([]byte, error) { return []byte(`{"statusCode":200,"body":"{}"}`), nil })
	asked := 0
	for _, s := range document.Servers {
		guard, local := s.Variables["guard"]
		if !local { // Lambda itself
			continue
		}
		server := &invokeapi.Server{Functions: map[string]invokeapi.Function{guard.Default: {Handler: answers, Timeout: time.Second, URL: true}}}
		for path := range document.Paths {
			whole := strings.ReplaceAll(s.URL, "{guard}", guard.Default) + path
			for _, address := range []string{whole, strings.TrimSuffix(whole, "/")} {
				w := httptest.NewRecorder()
				server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, address, strings.NewReader("{}")))
				if asked++; w.Code != http.StatusOK {
					t.Errorf("%s: %d %s", address, w.Code, w.Body)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("openapi.json has no address of guards serve")
	}
	server := &invokeapi.Server{Functions: map[string]invokeapi.Function{"f": {Handler: answers, Timeout: time.Second, URL: true}}}
	for _, path := range []string{"/f/x", "/f//", "//f/"} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")))
		if w.Code == http.StatusOK {
			t.Errorf("%s: 200, want only a slash at the end", path)
		}
	}
}
