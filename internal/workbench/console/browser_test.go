package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A browser is a headless Chromium. The test drives it over two pipes with the
// Chrome DevTools Protocol, in which each message is JSON that ends with a zero
// byte. So the test needs no library and no open port.
type browser struct {
	t  *testing.T
	in io.Writer

	mu      sync.Mutex
	last    int                   // the id of the last command
	waiting map[int]chan devReply // by the id of the command
	session string                // of the tab
	loaded  chan struct{}         // gets a value for each page that has loaded
	errors  []string              // what the page wrote to its console as an error, such as a violation of its policy
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
	out, replies, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{commands, replies} // descriptors 3 and 4
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = commands.Close(), replies.Close()
	b := &browser{t: t, in: in, waiting: map[int]chan devReply{}, loaded: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.listen(out)
	}()
	t.Cleanup(func() {
		b.session = ""
		if !t.Failed() {
			b.do("Browser.close", nil, nil)
		}
		stop()
		_ = cmd.Wait()
		<-ended
		_, _ = in.Close(), out.Close()
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
	b.do("Page.navigate", map[string]any{"url": address}, nil)
	select {
	case <-b.loaded:
	case <-time.After(patience):
		b.t.Fatalf("%s has not loaded", address)
	}
}

// listen reads what Chromium sends until it ends.
func (b *browser) listen(out io.Reader) {
	for r := bufio.NewReader(out); ; {
		message, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var reply devReply
		if json.Unmarshal(bytes.TrimSuffix(message, []byte{0}), &reply) != nil {
			continue
		}
		b.mu.Lock()
		if to, ok := b.waiting[reply.ID]; ok {
			delete(b.waiting, reply.ID)
			to <- reply
		} else if reply.Method == "Runtime.exceptionThrown" || reply.Method == "Log.entryAdded" && bytes.Contains(reply.Params, []byte(`"level":"error"`)) {
			b.errors = append(b.errors, string(reply.Params))
		} else if reply.Method == "Page.loadEventFired" {
			b.loaded <- struct{}{}
		}
		b.mu.Unlock()
	}
}

// do sends a command and waits for its result.
func (b *browser) do(method string, params, result any) {
	b.t.Helper()
	answered := make(chan devReply, 1)
	b.mu.Lock()
	b.last++
	b.waiting[b.last] = answered
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
	b.mu.Unlock()
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case reply := <-answered:
		if reply.Error != nil {
			b.t.Fatalf("%s: %s", method, reply.Error.Message)
		}
		if result == nil {
			return
		}
		if err := json.Unmarshal(reply.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	case <-time.After(patience):
		b.t.Fatal(errors.New(method + " was not answered"))
	}
}
