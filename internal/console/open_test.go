package console_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Each open page makes requests slower. One page too many is told why.
func TestTwentyPagesCanBeOpen(t *testing.T) {
	r := start(t, 0, nil)
	var pages []*stream
	for range 20 {
		s := r.watch("")
		s.wait("windows", "")
		pages = append(pages, s)
	}
	refused := r.open("")
	defer func() { _ = refused.Body.Close() }()
	if refused.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("one more page: %s", refused.Status)
	}
	if body, _ := io.ReadAll(refused.Body); string(body) != "20 consoles are open, which is the most. Close one, and load this page again.\n" {
		t.Errorf("one more page: %s", body)
	}
	pages[7].stop()
	for end := time.Now().Add(30 * time.Second); ; { // the server notices within moments that the page is gone
		response := r.open("")
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after a page was closed: %s", response.Status)
		}
	}
}

// What was counted ahead of the real time stays. A fixed window shows its earlier
// count again, and a log keeps the later one.
func TestCountsAfterTheClockIsReset(t *testing.T) {
	r := start(t, 0, nil)
	for _, tt := range []struct{ guard, activity, later string }{
		{"posts-guard", "create_post", `"activityCount":4,`},
		{"pins-guard", "pin", `"activityCount":7,`},
	} {
		r.app(tt.guard, `{"userId": "u1", "activity": "`+tt.activity+`", "count": 4}`)
		r.own("/console/clock", `{"move": 60000}`)
		r.app(tt.guard, `{"userId": "u1", "activity": "`+tt.activity+`", "count": 3}`)
		r.own("/console/clock", `{"reset": true}`)
		if got := r.app(tt.guard, `{"userId": "u1", "activity": "`+tt.activity+`", "op": "status"}`); !strings.Contains(got, tt.later) {
			t.Errorf("%s: %s, want %s", tt.activity, got, tt.later)
		}
	}
}
