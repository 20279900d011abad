package command

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	app "github.com/cric-talk/guards/limits"
)

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
