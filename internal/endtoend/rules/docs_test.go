package rules_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestRelativeLinksInDocumentsWork(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s#]+)[^)]*\)`)
	code := regexp.MustCompile("(?s)\n```.*?\n```") // such as errors.AsType[T](err)
	for name, content := range testkit.Files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, found := range link.FindAllSubmatch(code.ReplaceAll(content, nil), -1) {
			target := string(found[1])
			if strings.Contains(target, ":") { // https: or mailto:
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), target)); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
			}
		}
	}
}

// These pages have key figures and conclusions. All other figures are in the files beside them.
func TestThePagesOfFiguresStayShort(t *testing.T) {
	const most = 1500
	for _, name := range []string{"docs/reliability.md", "docs/performance.md"} {
		if words := len(strings.Fields(read(t, name))); words > most {
			t.Errorf("%s has %d words, want at most %d", name, words, most)
		}
	}
}

// docs/calling.md sends readers to these READMEs for all options. client has a
// test of its own.
func TestTheReadmesOfTheClientsListEachOption(t *testing.T) {
	typescript, python := regexp.MustCompile(`(?m)^  (\w+)\??: `), regexp.MustCompile(`(?m)^        (\w+): `)
	keyword := regexp.MustCompile(`(?m)^    (\w+): `)
	for _, tt := range []struct {
		language, source, begins, ends string // where the options are
		option                         *regexp.Regexp
		least                          int
	}{
		{"typescript", "src/options.ts", "export interface Options<A extends Activities = Activities> {", "\n}", typescript, 9},
		{"typescript", "src/middleware.ts", "interface", "\n}", typescript, 6},
		{"python", "src/guards/_base.py", "def __init__(", ") -> None:", python, 8},
		{"python", "src/guards/asgi.py", "def __init__(", ") -> None:", python, 4},
		{"python", "src/guards/flask.py", "def limit(", ") -> ", keyword, 4},
		{"python", "src/guards/fastapi.py", "def limit(", ") -> ", keyword, 3},
	} {
		folder := "clients/" + tt.language + "/"
		_, options, _ := strings.Cut(read(t, folder+tt.source), tt.begins)
		options, _, _ = strings.Cut(options, tt.ends)
		readme := read(t, folder+"README.md")
		found := tt.option.FindAllStringSubmatch(options, -1)
		for _, option := range found {
			if named := regexp.MustCompile("`" + option[1] + "[`(]|\\b" + option[1] + "[=,]"); !named.MatchString(readme) {
				t.Errorf("%sREADME.md does not name %s of %s", folder, option[1], tt.source)
			}
		}
		if len(found) < tt.least {
			t.Errorf("%s%s has the options %q, want at least %d", folder, tt.source, found, tt.least)
		}
	}
}

// operating.md lists the messages of the log with their levels. The packages that log are the functions'
// packages.
func TestTheDocumentListsEachMessageOfTheLog(t *testing.T) {
	rows := map[string]string{"lambdafn": "all", "guard": "guards", "live": "guards", "delayed": "`delayed-jobs`", "cleanup": "`cleanup`"}
	written := regexp.MustCompile(`slog\.Level(\w+), "([^"]+)"|logger\.(Info|Warn|Error)\("([^"]+)"`)
	want := map[string]string{} // row, level and place, by message
	for folder, row := range rows {
		for _, name := range testkit.Must(filepath.Glob("internal/" + folder + "/*.go"))(t) {
			text := testkit.Must(os.ReadFile(name))(t)
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
		cell, _, _ = strings.Cut(cell, ", and the guards' messages")
		for part := range strings.SplitSeq(cell, "; ") {
			level := strings.Trim(regexp.MustCompile(`\([A-Z]+\)`).FindString(part), "()")
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(part, -1) {
				got[m[1]] = row + " " + cmp.Or(level, "INFO")
			}
		}
	}
	testkit.Same(t, "messages of the log in docs/operating.md", want, got)
}

// The prices follow from how many alarms and metrics there are for each function and activity. The document counts the
// alarms and metrics of the project as it comes, and stays true when a guard is added.
func TestTheDocumentCountsWhatCosts(t *testing.T) {
	document := read(t, "docs/operating.md")
	_, table, _ := strings.Cut(document, "\n| metric | what it counts |\n")
	table, cleanup, _ := strings.Cut(table, "\n| `Scanned`")
	cleanup, _, _ = strings.Cut(cleanup, "\n\n")
	name := regexp.MustCompile("`[A-Z]\\w+`")
	guards, own := len(name.FindAllString(table, -1)), len(name.FindAllString("`Scanned`"+cleanup, -1))
	stack := len(alarms(t)) - 2*len(folders(t))
	m := regexp.MustCompile(`with (\d+) functions:(?:.|\n)*with (\d+) activities:`).FindStringSubmatch(document)
	if m == nil {
		t.Fatal("docs/operating.md counts no functions or no activities")
	}
	functions, _ := strconv.Atoi(m[1])
	activities, _ := strconv.Atoi(m[2])
	metrics := guards*activities + guards + own + 1
	// The dashboard is $3. The functions of one guard are its own and cleanup.
	month := func(alarms, metrics int) float64 { return math.Ceil(0.1*float64(alarms) + 0.3*float64(metrics) + 3) }
	all, one := month(stack+2*functions, metrics), month(stack+4, guards+own+1)
	testkit.Contains(t, "docs/operating.md", document,
		fmt.Sprintf("| alarms: $0.10 for each; %d for the stack and 2 for each function; with %d functions: | $%.2f |",
			stack, functions, 0.1*float64(stack+2*functions)),
		fmt.Sprintf("at most %d for each activity, %d of `delayed-jobs`, %d of cleanup and 1 for the alarm; with %d activities: | at most $%.0f |",
			guards, guards, own, activities, 0.3*float64(metrics)+0.5),
		fmt.Sprintf("at most $%.0f a month for these %d activities, and at most $%.0f for one guard with one\nactivity: %d alarms and %d metrics. "+
			"Each further activity adds at most $%.2f, and", all, activities, one, stack+4, guards+own+1, 0.3*float64(guards)),
	)
	fixed := fmt.Sprintf("a fixed cost of up to $%.0f for one guard with one activity, and of up to $%.0f for the %d\nactivities here", one, all, activities)
	if !strings.Contains(read(t, "README.md"), fixed) {
		t.Errorf("README.md does not say %q", fixed)
	}
}
