package traffic_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	. "github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

var update = flag.Bool("update", false, "write testdata/requests.txtar")

// Each log is recognized by its lines and read without options. The file
// testdata/logs.txtar has lines of each, and testdata/requests.txtar the time, the user
// and the activity of the requests in them.
func TestKnownLogs(t *testing.T) {
	logs, err := txtar.ParseFile("testdata/logs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := txtar.ParseFile("testdata/requests.txtar")
	if err != nil && !*update {
		t.Fatal(err)
	}
	result := &txtar.Archive{Comment: []byte("The requests in the logs of logs.txtar. The head of each says how the log was read.\n")}
	for _, log := range logs.Files {
		for _, ending := range []string{"\n", "\r\n"} {
			text := strings.ReplaceAll(string(log.Data), "\n", ending)
			r := NewReader(Options{}, File{"log", strings.NewReader(text)})
			got, err := lines(r)
			var b strings.Builder
			for _, s := range r.Sources() {
				fmt.Fprintf(&b, "# %+v\n", s)
				if _, name, _ := strings.Cut(": "+log.Name, ": "); !strings.HasSuffix(name, s.Format) {
					t.Errorf("%s is read as %s", log.Name, s.Format)
				}
			}
			for _, line := range got {
				fmt.Fprintf(&b, "%s %s %s\n", time.UnixMilli(line.Time).UTC().Format("2006-01-02T15:04:05.000"), line.User, line.Activity)
			}
			if err != nil {
				t.Errorf("%s: %v", log.Name, err)
			}
			file := txtar.File{Name: log.Name, Data: []byte(b.String())}
			if !*update {
				if diff := cmp.Diff(string(find(wanted, log.Name)), b.String()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", log.Name, diff)
				}
			} else if ending == "\n" {
				result.Files = append(result.Files, file)
			}
		}
	}
	if *update {
		if err := os.WriteFile("testdata/requests.txtar", txtar.Format(result), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func find(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}
