package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A browser is a headless Chromium. The test drives it over two pipes with the
// Chrome DevTools Protocol. Each message is JSON that ends with a zero byte. So
// the test needs no library and no open port.
type browser struct {
	t       *testing.T
	in      io.Writer
	replies *os.File
	reader  *bufio.Reader // of replies
	last    int           // the id of the last command
	session string        // of the tab
	loads   int           // how many pages have loaded
	errors  []string      // what the page wrote to its console as an error, such as a violation of its policy
}

// A devReply is an answer of the protocol, or an event.
type devReply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct{ Message string }
}

// patience is how long a test waits for the page. A machine can be busy.
const patience = 60 * time.Second

// find returns the program of Chromium, or an empty text.
func find() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return ""
}

// open starts Chromium with a tab of the given size.
func open(t *testing.T, width, height int) *browser {
	t.Helper()
	name := find()
	if name == "" {
		testkit.Skip(t, "there is no Chromium: install Debian's package chromium, or set CHROMIUM to the program")
	}
	commands, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	replies, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{commands, out} // descriptors 3 and 4
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.WaitDelay = 10 * time.Second
	testkit.OK(t, cmd.Start())
	_, _ = commands.Close(), out.Close()
	b := &browser{t: t, in: in, replies: replies, reader: bufio.NewReader(replies)}
	t.Cleanup(func() {
		b.session = ""
		if !t.Failed() {
			b.do("Browser.close", nil, nil)
		}
		stop()
		_ = cmd.Wait()
		_, _ = in.Close(), replies.Close()
		if t.Failed() {
			t.Logf("Chromium's log:\n%.2000s", log.String())
		}
	})

	var target struct{ TargetID string }
	b.do("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.do("Page.enable", nil, nil)
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.do("Runtime.enable", nil, nil)
	b.do("Log.enable", nil, nil)
	return b
}

// load opens a page and waits until it has loaded.
func (b *browser) load(address string) {
	b.t.Helper()
	before := b.loads
	b.do("Page.navigate", map[string]any{"url": address}, nil)
	b.read(address+" has not loaded", func(devReply) bool { return b.loads > before })
}

// read reads what Chromium sends until it finds a message. It takes notes of the events before it.
func (b *browser) read(failure string, found func(devReply) bool) devReply {
	b.t.Helper()
	var reply devReply
	for !found(reply) {
		_ = b.replies.SetReadDeadline(time.Now().Add(patience))
		message, err := b.reader.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: %v", failure, err)
		}
		reply = devReply{}
		testkit.OK(b.t, json.Unmarshal(bytes.TrimSuffix(message, []byte{0}), &reply))
		switch reply.Method {
		case "Page.loadEventFired":
			b.loads++
		case "Runtime.exceptionThrown":
			b.errors = append(b.errors, string(reply.Params))
		case "Log.entryAdded":
			if bytes.Contains(reply.Params, []byte(`"level":"error"`)) {
				b.errors = append(b.errors, string(reply.Params))
			}
		}
	}
	return reply
}

// do sends a command and waits for its result.
func (b *browser) do(method string, params, result any) {
	b.t.Helper()
	b.last++
	message := map[string]any{"id": b.last, "method": method, "params": params}
	if params == nil {
		message["params"] = struct{}{}
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	reply := b.read(method+" was not answered", func(r devReply) bool { return r.ID == b.last })
	if reply.Error != nil {
		b.t.Fatalf("%s: %s", method, reply.Error.Message)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result, result); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

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
		testkit.OK(t, os.WriteFile("../../../docs/img/console-"+scheme+".png", testkit.Must(base64.StdEncoding.DecodeString(shot.Data))(t), 0o600))
	}
}
