package findings

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"
)

// A Chart is a picture with a bar for each value.
type Chart struct {
	Name  string `json:"name"` // of its file, without the folder and the ending
	Title string `json:"title"`
	Bars  []Bar  `json:"bars"`
}

// A Bar is one value of a chart.
type Bar struct {
	Label string  `json:"label"`
	Value float64 `json:"value"`
	Text  string  `json:"text"` // the value as the chart shows it, with its unit
	Own   bool    `json:"own,omitempty"`
}

// Sizes of a chart, in pixels.
const (
	chartWidth = 720
	labelWidth = 250 // at least
	letterMost = 8.3 // of a label; the mean in wide fonts such as DejaVu Sans
	textWidth  = 110
	barHeight  = 26
	barsTop    = 44
)

const chartStyle = `text{font:14px system-ui,sans-serif;fill:#24292f}` +
	`.title{font-weight:600}.bar{fill:#8c959f}.own{fill:#0969da}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#6e7681}.own{fill:#4493f8}}`

// SVG returns the picture.
func (c Chart) SVG() []byte {
	most := 0.0
	for _, bar := range c.Bars {
		most = max(most, bar.Value)
	}
	labels := float64(labelWidth)
	for _, bar := range c.Bars {
		labels = max(labels, math.Ceil(letterMost*float64(utf8.RuneCountInString(bar.Label)))+16)
	}
	height := barsTop + barHeight*len(c.Bars) + 8
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, height, html.EscapeString(c.Title))
	line(`<style>%s</style>`, chartStyle)
	line(`<text class="title" x="8" y="24">%s</text>`, html.EscapeString(c.Title))
	for i, bar := range c.Bars {
		class, y := "bar", barsTop+barHeight*i
		if bar.Own {
			class = "own"
		}
		width := 1.0
		if most > 0 {
			width = max(1, bar.Value/most*(chartWidth-labels-textWidth))
		}
		line(`<text x="%v" y="%d" text-anchor="end">%s</text>`, labels-8, y+17, html.EscapeString(bar.Label))
		line(`<rect class="%s" x="%v" y="%d" width="%.1f" height="%d"/>`, class, labels, y+2, width, barHeight-6)
		line(`<text x="%.1f" y="%d">%s</text>`, labels+width+8, y+17, html.EscapeString(bar.Text))
	}
	line(`</svg>`)
	return []byte(b.String())
}
