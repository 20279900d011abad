package agentd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever comes as HTTP, it is answered as the agent's table says. What reaches a guard is a
// POST of JSON with the token, and with nothing that only a browser sends.
func FuzzHandler(f *testing.F) {
	const valid = "POST /posts-guard HTTP/1.1\r\nHost: localhost:2774\r\nGuards-Token: local\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n" +
		`{"userId":"u1","activity":"create_post"}`
	for _, seed := range []string{
		valid,
		strings.Replace(valid, "/posts-guard", "/", 1),
		strings.Replace(valid, "POST", "GET", 1),
		strings.Replace(valid, "POST /posts-guard", "GET /health", 1),
		strings.Replace(valid, "/posts-guard", "http://evil.example/posts-guard", 1),
		strings.Replace(valid, "localhost", "evil.example", 1),
		strings.Replace(valid, "Guards-Token: local", "guards-token: local\r\nOrigin: null", 1),
		strings.Replace(valid, "Content-Length: 40", "Transfer-Encoding: chunked", 1),
		strings.Replace(valid, "local\r", "locaL\r", 1),
		strings.Replace(valid, "create_post", "\xffreate_post", 1),
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(strings.Replace(seed, "Guards-Token: local", "Guards-Token: secret", 1)), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, configured bool) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // net/http itself refuses it
		}
		token, word := "", "local"
		if configured {
			token, word = "secret", "secret"
		}
		h, reached := cricketGuards(token)
		h.Panicked = func(value any, stack []byte) { t.Fatalf("%v\n%s", value, stack) }
		w := httptest.NewRecorder()
		func() {
			defer func() { _ = recover() }() // the body does not arrive: the connection ends
			h.ServeHTTP(w, r)
		}()
		if w.Header().Get("Guards-Agent") != "1" || strings.Contains(w.Body.String(), "secret") && !strings.Contains(string(raw), "secret") {
			t.Fatalf("%q: %v %s", raw, w.Header(), w.Body)
		}
		if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%q: %s", raw, w.Body)
		}
		if reached.Load() == 0 {
			return
		}
		local := strings.HasPrefix(strings.ToLower(r.Host), "localhost") || strings.HasPrefix(r.Host, "127.0.0.1") || strings.HasPrefix(r.Host, "[::1]")
		if r.Method != http.MethodPost || r.Header.Get("Guards-Token") != word || r.Header["Origin"] != nil || r.Header["Sec-Fetch-Site"] != nil ||
			!strings.HasPrefix(strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Type"))), "application/json") || !configured && !local {
			t.Fatalf("%q reaches a guard", raw)
		}
	})
}
