package findings

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A label begins inside the picture, and the longest bar and its text end inside. A letter
// of DejaVu Sans, a wide font, has 8.2 of 14 pixels in the mean.
func TestALongLabelFitsTheChart(t *testing.T) {
	ends := regexp.MustCompile(`<text x="([0-9.]+)" y="[0-9]+" text-anchor="end">([^<]*)<`)
	bars := regexp.MustCompile(`x="([0-9.]+)" y="[0-9]+" width="([0-9.]+)"`)
	for _, length := range []int{5, 28, 29, 30, 38, 51} {
		svg := string(Chart{Bars: []Bar{{Label: strings.Repeat("e", length), Value: 3, Text: "12,345 ms"}, {Label: "ms", Value: 1}}}.SVG())
		for _, label := range ends.FindAllStringSubmatch(svg, -1) {
			if x, _ := strconv.ParseFloat(label[1], 64); x < 8.2*float64(len(label[2])) {
				t.Errorf("the label of %d letters ends at %v", len(label[2]), x)
			}
		}
		for _, bar := range bars.FindAllStringSubmatch(svg, -1) {
			x, _ := strconv.ParseFloat(bar[1], 64)
			width, _ := strconv.ParseFloat(bar[2], 64)
			if x+width+8+9*8.2 > chartWidth {
				t.Errorf("with a label of %d letters, a bar ends at %v", length, x+width)
			}
		}
	}
}
