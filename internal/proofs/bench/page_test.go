//go:build unix

package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestThePagesShowTheSavedResults(t *testing.T) {
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s does not show the saved results: run go run ./internal/proofs/bench/run -page", name)
		}
	}
}

func TestCompare(t *testing.T) {
	goal := func(median float64) map[string]Goal {
		return map[string]Goal{"time": {What: "time", Spread: Spread{median - 1, median, median + 1}, Most: 10}}
	}
	three := func(median float64) []map[string]Goal {
		return []map[string]Goal{goal(median + 3), goal(median), goal(median - 3)}
	}
	for _, test := range []struct {
		name      string
		now, then float64
		want      string // in the error
	}{
		{"as before", 8, 8, ""},
		{"a tenth more", 8.8, 8, ""},
		{"more than a tenth more", 8.9, 8, "time: 8.9 (7.9 to 9.9) is more than a tenth above 8 (7 to 9)"},
		{"above the goal by less than the spread", 10.9, 10, ""},
		{"above the goal", 11.1, 11, "time: 11.1 (10.1 to 12.1) is above the goal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			err := compare(&out, three(test.now), three(test.then))
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := compare(new(strings.Builder), three(8), []map[string]Goal{{}, {}, {}}); err != nil {
		t.Errorf("a goal that the merge base does not have: %v", err)
	}
}

func TestAChartEscapesItsText(t *testing.T) {
	svg := string(Chart{Title: "a < b", Bars: []Bar{{Label: "x & y", Text: "0"}}}.SVG())
	for _, want := range []string{"a &lt; b", "x &amp; y", `width="1.0"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture has no %q:\n%s", want, svg)
		}
	}
}
