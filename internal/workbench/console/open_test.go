package console_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
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

// Open pages read a window with a count once a second, however many they are. A
// window without a count needs no reads.
func TestOpenPagesReadOnceASecond(t *testing.T) {
	r := start(t, 0, nil)
	r.app("pins-guard", `{"userId": "u1", "activity": "pin"}`)
	r.app("pins-guard", `{"userId": "u2", "activity": "pin"}`)
	r.app("pins-guard", `{"userId": "u2", "activity": "pin", "op": "reset"}`)
	began, before := time.Now(), r.store.reads.Load()
	for range 3 {
		r.watch("").wait("windows", "")
	}
	var reads int64
	for reads < 4 && time.Since(began) < 30*time.Second {
		time.Sleep(10 * time.Millisecond)
		reads = r.store.reads.Load() - before
	}
	if most := int64(time.Since(began)/time.Second) + 1; reads < 4 || reads > most {
		t.Errorf("%d reads in %v, want 4 to %d", reads, time.Since(began), most)
	}
}

// What was counted ahead of the real time stays, until the window is cleared, which its button does. A
// fixed window shows its earlier count again. The others keep the later count,
// and refuse for as long as the clock was ahead. A reservoir can't be cleared.
func TestCountsAfterTheClockIsReset(t *testing.T) {
	for _, tt := range []struct {
		guard, activity string
		first, ahead    int // actions before and after the clock is moved, one at a time
		later           string
		refuses, clears bool
	}{
		{"posts-guard", "create_post", 4, 10, `"allowed":true,.*"activityCount":4,`, false, true},
		{"pins-guard", "pin", 4, 96, `"allowed":false,.*"activityCount":100,`, true, true},
		{"chat-guard", "send_message", 1, 1, `"allowed":false,`, true, true},
		{"jobs-guard", "update_member_role", 1, 10, `"allowed":false,`, true, false},
	} {
		r := start(t, 0, nil)
		send := func(fields string) string {
			return r.app(tt.guard, `{"userId": "u1", "activity": "`+tt.activity+`"`+fields+`}`)
		}
		for range tt.first {
			send("")
		}
		r.own("/console/clock", `{"move": 600000}`)
		for range tt.ahead {
			send("")
		}
		r.own("/console/clock", `{"reset": true}`)
		status := send(`, "op": "status"`)
		var got struct{ WaitTime int64 }
		if err := json.Unmarshal([]byte(status), &got); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(tt.later).MatchString(status) || tt.refuses && got.WaitTime < (9*time.Minute).Milliseconds() {
			t.Errorf("%s: %s, want %s, and a wait of at least the 10 min if it is refused", tt.activity, status, tt.later)
		}
		button := regexp.MustCompile(`data-act="clear"( hidden)?>`).FindStringSubmatch(r.get("/"))
		if visible := button != nil && button[1] == ""; visible != tt.clears {
			t.Errorf("%s: the button Clear is visible: %v, want %v", tt.activity, visible, tt.clears)
		}
	}
}
