package command

import (
	"strings"
	"testing"
)

// An app's test moves the clock of guards serve, and the guards count in the next window.
func TestServeMovesTheClockForTests(t *testing.T) {
	endpoint, _ := serve(t, "--clock")
	count := func() string {
		return post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post", "count": 10}`).Text
	}
	if first, second := count(), count(); !strings.Contains(first, `"allowed":true`) || !strings.Contains(second, `"allowed":false`) {
		t.Fatalf("%s %s", first, second)
	}
	before := get(t, endpoint+"/clock")
	if before.StatusCode != 200 || !strings.Contains(before.Text, `"now":`) || !strings.Contains(before.Text, `"ahead":""`) {
		t.Errorf("%s %s", before.Status, before.Text)
	}
	json := []string{"Content-Type", "application/json"}
	if r := post(t, endpoint+"/clock", `{"move": 86400000}`, json...); r.StatusCode != 200 || !strings.Contains(r.Text, `"ahead":"24 h 0 min"`) {
		t.Errorf("%s %s", r.Status, r.Text)
	}
	if tomorrow := count(); !strings.Contains(tomorrow, `"allowed":true`) {
		t.Errorf("tomorrow: %s", tomorrow)
	}
	if r := post(t, endpoint+"/clock", `{"reset": true}`, json...); r.StatusCode != 200 || !strings.Contains(r.Text, `"ahead":""`) {
		t.Errorf("%s %s", r.Status, r.Text)
	}
}

// Nobody but a program on this machine moves the clock, and nobody at all without --clock.
func TestTheClockIsForTestsOnly(t *testing.T) {
	endpoint, _ := serve(t, "--clock")
	for _, tt := range []struct {
		name    string
		headers []string
		body    string
		want    int
	}{
		{"a page of another site", []string{"Content-Type", "application/json", "Origin", "https://example.com"}, `{"move": 1}`, 403},
		{"the console's own page", []string{"Content-Type", "application/json", "Origin", endpoint}, `{"move": 1}`, 403},
		{"a page without an Origin", []string{"Content-Type", "application/json", "Sec-Fetch-Site", "none"}, `{"move": 1}`, 403},
		{"a form", []string{"Content-Type", "text/plain"}, `{"move": 1}`, 415},
		{"back", []string{"Content-Type", "application/json"}, `{"move": -1}`, 400},
		{"too far", []string{"Content-Type", "application/json"}, `{"move": 31708800000}`, 400},
		{"no JSON", []string{"Content-Type", "application/json"}, `{`, 400},
	} {
		if r := post(t, endpoint+"/clock", tt.body, tt.headers...); r.StatusCode != tt.want {
			t.Errorf("%s: %s %s, want %d", tt.name, r.Status, r.Text, tt.want)
		}
	}
	without, _ := serve(t)
	if r := post(t, without+"/clock", `{"move": 1}`, "Content-Type", "application/json"); r.StatusCode != 404 {
		t.Errorf("without --clock: %s %s", r.Status, r.Text)
	}
}
