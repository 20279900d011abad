package guards_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
)

// operating.md lists the messages of the log with their levels. The packages that log are those of the functions.
func TestTheDocumentListsEachMessageOfTheLog(t *testing.T) {
	rows := map[string]string{"lambdafn": "all", "guard": "guards", "live": "guards", "delayed": "`delayed-jobs`", "cleanup": "`cleanup`"}
	written := regexp.MustCompile(`slog\.Level(\w+), "([^"]+)"|logger\.(Info|Warn|Error)\("([^"]+)"`)
	want := map[string]string{} // row, level and place, by message
	for folder, row := range rows {
		files, err := filepath.Glob("internal/" + folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, m := range written.FindAllStringSubmatch(string(text), -1) {
				want[m[2]+m[4]] = row + " " + strings.ToUpper(m[1]+m[3])
			}
		}
	}
	got := map[string]string{}
	document := read(t, "docs/operating.md")
	for _, row := range rows {
		_, cell, found := strings.Cut(document, "\n| "+row+" | ")
		if !found {
			t.Fatalf("docs/operating.md has no row of messages for %s", row)
		}
		cell, _, _ = strings.Cut(cell, " |\n")
		cell, _, _ = strings.Cut(cell, ", and those of the guards")
		for part := range strings.SplitSeq(cell, "; ") {
			level := strings.Trim(regexp.MustCompile(`\([A-Z]+\)`).FindString(part), "()")
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(part, -1) {
				got[m[1]] = row + " " + cmp.Or(level, "INFO")
			}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("messages of the log in docs/operating.md (-code +document):\n%s", diff)
	}
}

// The prices follow from how many alarms, activities and metrics there are.
func TestTheDocumentCountsWhatCosts(t *testing.T) {
	document := read(t, "docs/operating.md")
	activities := 0
	for _, g := range limits.All {
		activities += len(g.Activities)
	}
	_, table, _ := strings.Cut(document, "\n| metric | what it counts |\n")
	table, cleanup, _ := strings.Cut(table, "\n| `Scanned`")
	cleanup, _, _ = strings.Cut(cleanup, "\n\n")
	name := regexp.MustCompile("`[A-Z]\\w+`")
	guards, own := len(name.FindAllString(table, -1)), len(name.FindAllString("`Scanned`"+cleanup, -1))
	metrics := guards*activities + guards + own + 1
	for _, sentence := range []string{
		fmt.Sprintf("| alarms: %d at $0.10, two more for each guard that you add | $%.2f |", len(alarms(t)), 0.1*float64(len(alarms(t)))),
		fmt.Sprintf("at most %d for each of %d activities, %d of `delayed-jobs`, %d of cleanup and 1 for the alarm | at most $%.0f |",
			guards, activities, guards, own, 0.3*float64(metrics)+0.5),
	} {
		if !strings.Contains(document, sentence) {
			t.Errorf("docs/operating.md does not say %q", sentence)
		}
	}
}
