package findings

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each saved result is as Save would write it, so that it can be read line by line.
func TestSavedResultsAreWrittenForReaders(t *testing.T) {
	proofs, _ := filepath.Glob("../../../docs/reliability/*.json")
	measured, _ := filepath.Glob("../../../docs/performance/*.json")
	if len(proofs) < 8 || len(measured) < 13 {
		t.Fatalf("there are %d saved proofs and %d measurements, want at least 8 and 13", len(proofs), len(measured))
	}
	for _, name := range slices.Concat(proofs, measured) {
		s, err := Read(filepath.Dir(name), strings.TrimSuffix(filepath.Base(name), ".json"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := s.JSON()
		got, readErr := os.ReadFile(name)
		if err != nil || readErr != nil || string(got) != string(want) {
			t.Errorf("%s: %v, %v; it is\n%.2000s\nwant\n%.2000s", name, err, readErr, got, want)
		}
	}
}

func TestARowNamesItsCells(t *testing.T) {
	s := Saved{Command: "make n", Result: Result{Tables: []Table{{
		Title: "People [", Head: []string{"name", "age"}, Rows: [][]string{{"Ann {", "41"}, {"", "7"}},
	}}}}
	content, err := s.JSON()
	for _, line := range []string{`{ "name": "Ann {", "age": "41" },`, `{ "name": "", "age": "7" }`, `"title": "People [",`} {
		if err != nil || !strings.Contains(string(content), "\t"+line+"\n") {
			t.Errorf("%v, there is no line %s in\n%s", err, line, content)
		}
	}
	for _, bad := range []Table{
		{Head: []string{"", "age"}},
		{Head: []string{"age", "age"}},
		{Head: []string{"name", "age"}, Rows: [][]string{{"Ann"}}},
	} {
		if content, err := json.Marshal(bad); err == nil {
			t.Errorf("%+v is written as %s, want an error", bad, content)
		}
	}
}

func TestACellIsFoundByItsColumnAndItsRow(t *testing.T) {
	table := Table{Head: []string{"limit", "apart", "most"}, Rows: [][]string{{"10/1m", "0s", "20"}, {"10/1m", "2s", "21"}}}
	for _, tt := range []struct {
		column string
		with   []string
		want   string
	}{
		{"most", []string{"10/1m"}, "20"},
		{"most", []string{"10/1m", "2s"}, "21"},
		{"most", []string{"10/1m", "3s"}, ""},
		{"least", []string{"10/1m"}, ""},
	} {
		if got, ok := table.Cell(tt.column, tt.with...); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%q with %q is %q, %v, want %q", tt.column, tt.with, got, ok, tt.want)
		}
	}
}

// make bench-check reads what the code of an earlier commit has saved.
func TestGoalsOfAnEarlierFormAreRead(t *testing.T) {
	folder := t.TempDir()
	const saved = `{"tables": [{"title": "T", "head": [""], "rows": [["1"]]}], "goals": [{"what": "CPU", "low": 1, "median": 2, "high": 3, "most": 4}]}`
	if err := os.WriteFile(filepath.Join(folder, "n.json"), []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []Goal{{What: "CPU", Spread: Spread{Low: 1, Median: 2, High: 3}, Most: 4}}
	if got, err := Goals(folder, "n"); err != nil || !slices.Equal(got, want) {
		t.Errorf("the goals are %v, %v, want %v", got, err, want)
	}
}

func TestAGoalIsMetPartlyIfSomeRoundsReachIt(t *testing.T) {
	for met, s := range map[string]Spread{"yes": {1, 4, 6}, "partly": {4, 5, 6}, "no": {5, 6, 7}} {
		if got := (Goal{Spread: s, Most: 4}).Met(); got != met {
			t.Errorf("%v of at most 4 is met: %s, want %s", s, got, met)
		}
	}
}
