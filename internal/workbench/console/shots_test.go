package console_test

import (
	"encoding/base64"
	"flag"
	"os"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "take the screenshots of the documents again")

// The documents show the console in both color schemes:
//
//	go test ./internal/workbench/console -run=Screenshots -update
func TestScreenshots(t *testing.T) {
	if !*update {
		t.Skip("-update takes the screenshots")
	}
	r := start(t, 18*time.Second, nil)
	r.app("ingest-guard", `{"userId": "server-12", "activity": "ingest", "count": 31}`)
	r.app("pins-guard", `{"userId": "team-7", "activity": "pin", "count": 93}`)
	r.app("comments-guard", `{"userId": "maria", "activity": "add_comment", "count": 21}`)
	b := open(t, 1180, 800)
	b.load(r.url)
	b.choose("times", "12")
	b.click("#ask button.main")
	b.wait("#result", "Refused.")
	b.wait("#window-list li", "Refused.")
	b.wait("#answer-list li:first-child", "refused")
	r.app("comments-guard", `{"userId": "maria", "activity": "add_comment"}`)
	b.wait("#answer-list li:first-child", "app")
	b.js("document.querySelector('header strong').textContent = '127.0.0.1:3001'; document.activeElement.blur()", nil)
	for scheme, dark := range map[string]bool{"light": false, "dark": true} {
		b.dark(dark)
		time.Sleep(time.Second) // the bars grow
		var shot struct{ Data string }
		b.do("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
		raw, err := base64.StdEncoding.DecodeString(shot.Data)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("../../../docs/img/console-"+scheme+".png", raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
