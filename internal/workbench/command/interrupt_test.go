package command

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{"y\n": nil, "Yes\n": nil, " y": nil, "n\n": errDeclined, "\n": errDeclined, "": errDeclined, "yes please\n": errDeclined} {
		var asked strings.Builder
		err := yesFlag{}.confirm(t.Context(), session{page: app.All, in: strings.NewReader(answer), out: io.Discard, err: &asked}, "Delete?", "")
		if !errors.Is(err, want) || asked.String() != "Delete? [y/N] " {
			t.Errorf("%q after %q: %v, want %v", answer, &asked, err, want)
		}
	}
	if err := (yesFlag{Yes: true}).confirm(t.Context(), session{}, "Delete?", ""); err != nil {
		t.Errorf("--yes: %v, want no question", err)
	}
	if err := (yesFlag{}).confirm(t.Context(), session{}, "Delete?", ", or wait"); err == nil || !strings.HasSuffix(err.Error(), "give --yes to go ahead, or wait") {
		t.Errorf("no person can answer: %v", err)
	}
}

// questions maps each command to its question. The question names the user as
// typed, the table and the table's region and address. No server listens at
// that address.
var questions = map[string]string{
	"erase --user u1":                   "Delete everything about u1: items, grants and blocks, with the places that update_member_role gave, which are then given again, in " + atTable + "?",
	"cleanup":                           "Delete everything that has expired in " + atTable + "?",
	"reset --user u1 create_post":       "Clear create_post of u1 in " + atTable + "?",
	"limits set create_post --mode off": "Switch create_post off in " + atTable + "? Nobody is limited then, and nothing is counted.",
}

const (
	nowhere = " --table counts --region eu-west-1 --endpoint http://127.0.0.1:1"
	atTable = "the table counts in eu-west-1 at http://127.0.0.1:1"
)

// A declined question is not a mistake, but it is not a success either: in a
// shell, the command after && must not run as if everything had been deleted.
func TestDecliningEndsTheCommand(t *testing.T) {
	credentials(t)
	for command, question := range questions {
		status, _, log := session{page: app.All, in: strings.NewReader("n\n")}.does(t, strings.Fields(command+nowhere)...)
		if want := question + " [y/N] guards: nothing was changed\n"; status != interrupted || log != want {
			t.Errorf("guards %s: status %d, %q, want %q", command, status, log, want)
		}
	}
}

func TestInterruptAtTheQuestionEndsTheCommand(t *testing.T) {
	credentials(t)
	for command, question := range questions {
		var log stream
		ctx, interrupt := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil && !strings.HasSuffix(log.String(), "[y/N] ") {
				time.Sleep(time.Millisecond)
			}
			interrupt()
		}()
		silent, writer := io.Pipe()
		status := run(ctx, strings.Fields(command+nowhere), session{page: app.All, in: silent, err: &log})
		if status != interrupted || log.String() != question+" [y/N] \n" {
			t.Errorf("guards %s: status %d, %q", command, status, &log)
		}
		interrupt()
		_ = writer.Close()
	}
}

// A command that Ctrl-C stops fails with an error of its store. The command
// does not report that error as an outage. It prints what was done.
func TestInterruptedCommandsPrintWhatWasDone(t *testing.T) {
	credentials(t)
	for command, want := range map[string]string{ // on both streams; TABLE is the table
		"status --user u1":                  "",
		"stats":                             "guards: stopped before the end: the figures are those of the items that were read\n0 items of 0 users, 0 stale, in TABLE\n",
		"stats --json":                      "guards: stopped before the end: the figures are those of the items that were read\n" + `{"table":"counts","region":"eu-west-1","trackedUsers":0,"items":0,"stale":0,"activities":[]}` + "\n",
		"cleanup --yes":                     "0 items of 0 users read, 0 stale, at least 0 deleted before the command was stopped, in TABLE\n",
		"erase --user u1 --yes":             "0 items of u1 found, at least 0 deleted before the command was stopped, in TABLE\n",
		"reset create_post --user u1 --yes": "guards: stopped: create_post of u1 may be cleared or not; see guards status --user u1\n",
		"limits set create_post 20/1m":      "guards: stopped: the change may be made or not; see guards limits history\n",
		"limits diff":                       "",
		"check create_post --user u1 --store dynamodb --times 2": "guards: stopped after 0 of 2 requests\n",
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") && !strings.HasPrefix(command, "limits diff") {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				_, _ = io.WriteString(w, "{}") // there are no live limits
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			interrupt()
			<-r.Context().Done()
		}))
		var printed stream
		args := append(strings.Fields(command), "--table", "counts", "--region", "eu-west-1", "--endpoint", server.URL)
		status := run(ctx, args, session{page: app.All, out: &printed, err: &printed})
		want = strings.ReplaceAll(want, "TABLE", "the table counts in eu-west-1 at "+server.URL)
		if status != interrupted || printed.String() != want {
			t.Errorf("guards %s: status %d, %q, want %q", command, status, &printed, want)
		}
		interrupt()
		server.Close()
	}
}

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
	testkit.OK(t, testkit.Must(os.FindProcess(os.Getpid()))(t).Signal(syscall.SIGTERM))
	if status := <-ended; status != interrupted || !strings.Contains(log.String(), "guards: stopped after 0 requests") {
		t.Errorf("status %d: %s", status, &log)
	}
}
