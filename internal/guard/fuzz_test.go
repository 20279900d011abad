package guard_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/cric-talk/guards/internal/input"
)

// For any bytes, the guard either answers about exactly the user and the
// activity that they name, or returns a ValidationError.
func FuzzInvoke(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"userId": "u1", "activity": "create_post"}`, `{"userId": "u1", "userId": "u2", "activity": "like"}`,
		`{"userId": "\u0075", "activity": "like", "roles": ["admin"], "count": 3, "partial": true}`,
		`{"userId": "u1", "activity": "create_post", "op": "release", "at": 1, "requestId": "r"}`,
		`{"userId": "u1", "activity": "like", "op": "renew", "at": 1, "requestId": "r", "count": 2}`,
		`{"requestContext": {"http": {"method": "POST"}}, "body": "{}"}`, "{\"userId\": \"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		b := newBench(t)
		out, err := b.Invoke(t.Context(), payload)
		if err != nil {
			if _, ok := errors.AsType[*input.ValidationError](err); !ok {
				t.Fatalf("%q: %v, want a ValidationError", payload, err)
			}
			return
		}
		var in, got map[string]any
		if err := errors.Join(json.Unmarshal(payload, &in), json.Unmarshal(out, &got)); err != nil {
			t.Fatalf("%q is answered %q: %v", payload, out, err)
		}
		if got["statusCode"] == nil && (got["userId"] != in["userId"] || got["activity"] != in["activity"]) {
			t.Fatalf("%q is answered about another user or activity: %s", payload, out)
		}
	})
}
