package command

import (
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	app "github.com/cric-talk/guards/limits"
)

// Containers and service managers stop a process with SIGTERM.
func TestSIGTERMStopsLikeCtrlC(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process can't send SIGTERM on Windows")
	}
	before := os.Args
	defer func() { os.Args = before }()
	os.Args = []string{"guards", "serve", "--addr", "127.0.0.1:0"}
	var log stream
	ended := make(chan int, 1)
	go func() { ended <- program(session{page: app.All, out: io.Discard, err: &log}) }()
	started(t, &log, ended)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := <-ended; status != interrupted || !strings.Contains(log.String(), "guards: stopped after 0 requests") {
		t.Errorf("status %d: %s", status, &log)
	}
}
