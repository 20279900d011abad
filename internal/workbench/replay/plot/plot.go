// Package plot draws a timeline as SVG: the requests and their outcome, and the
// count below the limit.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/workbench/replay"
)

const (
	width      = 800 * pixel
	minLeft    = 78 * pixel // of the time axis
	right      = width - 34*pixel
	inset      = 6 * pixel // room for a mark at either end of the axis
	plotHeight = 150 * pixel
	oneOfMany  = 96 * pixel // height, if there are several limits
	pileRow    = 9 * pixel  // distance between two marks of a pile
	maxTitle   = 85         // characters
	maxLine    = 105        // characters of the line below the title
	highest    = 8          // marks in a pile; a higher pile is cut and gets a number
)

// A picture is a canvas that is filled from top to bottom.
type picture struct {
	canvas
	all  []*replay.Timeline // several are compared
	t    *replay.Timeline   // the one that is being drawn
	left px                 // of the time axis
	y    px                 // where the next part begins
}

// SVG draws one timeline, or several of the same user and the same period below
// each other. It writes the same bytes for the same timelines, on every machine.
func SVG(w io.Writer, timelines ...*replay.Timeline) error {
	p := &picture{all: timelines, t: timelines[0], left: minLeft}
	for _, t := range timelines {
		for _, of := range t.Panels {
			p.left = max(p.left, labelEnd+widthOf(limitLabel(of.Limit))+2*pixel)
		}
	}
	p.heading()
	for _, t := range timelines {
		p.t = t
		if p.compares() {
			p.subheading()
		}
		for i := range t.Panels {
			p.panel(&t.Panels[i])
		}
		p.times()
		p.densest()
	}
	height := p.y + 14*pixel

	var all canvas
	all.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" role="img" aria-labelledby="t d">`,
		width, height, width, height)
	all.add(`<title id="t">%s</title>`, escape(p.title()))
	all.add(`<desc id="d">%s</desc>`, escape(p.description()))
	all.add("%s", style)
	all.rect("bg", 0, 0, width, height)
	_, _ = all.Write(p.Bytes())
	all.add("</svg>")
	_, err := w.Write(all.Bytes())
	return err
}

// compares reports whether the picture shows several timelines.
func (p *picture) compares() bool { return len(p.all) > 1 }

// shapes are the ids of the marks in style.
var shapes = [...]string{replay.Allowed: "allowed", replay.Refused: "refused", replay.Delayed: "delayed", replay.Runs: "runs"}

// x returns the place of a time on the axis.
func (p *picture) x(at int64) px {
	axis := int64(right - p.left - 2*inset)
	return p.left + inset + px(axis*p.t.Shown(at)/p.t.Shown(p.t.To))
}

// densest draws a bracket around the time with the most allowed requests.
func (p *picture) densest() {
	d := p.t.Densest
	if d.N == 0 {
		return
	}
	class, words := "bracket", "b"
	if d.N > d.Limit {
		class, words = "over", "w"
	}
	from, to := p.x(d.From)-4*pixel, p.x(d.To)+4*pixel
	p.add(`<path class="%s" d="M%v %vv%vH%vv%v"/>`, class, from, p.y, 6*pixel, to, -6*pixel)
	const half = 150 * pixel // at least half the width of the text
	x, anchor := (from+to)/2, "middle"
	switch {
	case x < p.left+half:
		x, anchor = max(from, p.left), "start"
	case x > right-half:
		x, anchor = min(to, right), "end"
	}
	p.text(words, anchor, x, p.y+22*pixel, most(p.t))
	p.y += 24 * pixel
}

// most returns the number of allowed requests in the densest time, in words.
func most(t *replay.Timeline) string {
	verb := "allowed"
	if t.Delayed > 0 {
		verb = "run"
	}
	d := t.Densest
	s := fmt.Sprintf("most %s in any %s: %d", verb, span(d.Window), d.N)
	if d.To > d.From {
		s += ", here in " + length(d.To-d.From)
	}
	return s
}

// span returns a duration in words that can follow "any": minute, or 5 s.
func span(ms int64) string {
	for _, unit := range []struct {
		ms          int64
		one, symbol string
	}{{86_400_000, "day", "days"}, {3_600_000, "hour", "h"}, {60_000, "minute", "min"}, {1000, "second", "s"}} {
		if ms == unit.ms {
			return unit.one
		}
		if ms%unit.ms == 0 {
			return fmt.Sprintf("%d %s", ms/unit.ms, unit.symbol)
		}
	}
	return fmt.Sprintf("%d ms", ms)
}

// length returns a duration in words, rounded up.
func length(ms int64) string {
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 120_000:
		return fmt.Sprintf("%d s", (ms+999)/1000)
	case ms <= 59*60_000:
		return fmt.Sprintf("%d min", (ms+59_999)/60_000)
	case ms < 86_400_000:
		return fmt.Sprintf("%d h %d min", (ms+59_999)/3_600_000, (ms+59_999)%3_600_000/60_000)
	}
	return fmt.Sprintf("%d h", (ms+3_599_999)/3_600_000)
}

// period returns the start and the end of the timeline, in words.
func period(t *replay.Timeline) string {
	const day, clock = "2 January 2006 ", "15:04:05"
	from, to := time.UnixMilli(t.From).UTC(), time.UnixMilli(t.To).UTC()
	end := to.Format(day + clock)
	if from.Format(day) == to.Format(day) {
		end = to.Format(clock)
	}
	return from.Format(day+clock) + " to " + end + " UTC"
}

const edge = 16 * pixel // left of the headings

func (p *picture) title() string {
	if p.compares() {
		return fmt.Sprintf("%s: %d limits compared", p.t.Activity, len(p.all))
	}
	s := p.t.Activity + ": " + p.t.Policy
	if len(s) > maxTitle {
		s = fmt.Sprintf("%s: %d limits", p.t.Activity, len(p.t.Panels))
	}
	return s
}

// description returns the picture in words, for readers who cannot see it.
func (p *picture) description() string {
	requests := fmt.Sprintf("%d requests of the user %s from %s", p.t.Requests, p.t.User, period(p.t))
	if len(p.t.Cuts) > 0 {
		requests += ", without the windows in which there was none"
	}
	if !p.compares() {
		return requests + ": " + outcome(p.t)
	}
	parts := []string{requests + "."}
	for _, t := range p.all {
		parts = append(parts, t.Policy+": "+outcome(t))
	}
	return strings.Join(parts, " ")
}

func outcome(t *replay.Timeline) string {
	s := fmt.Sprintf("%d allowed, %d refused, %d delayed.", t.Allowed, t.Refused, t.Delayed)
	if t.Densest.N > 0 {
		s += " " + most(t) + "."
	}
	return s
}

// heading draws the title, the user and the legend. In a comparison, the
// numbers are in the subheadings.
func (p *picture) heading() {
	p.text("t", "start", edge, 30*pixel, p.title())
	when := ", " + period(p.t)
	if len(p.t.Cuts) > 0 {
		when += ", without empty windows"
	}
	if !p.t.Whole {
		when = " at the worst" + when
	}
	p.text("q", "start", edge, 51*pixel, "user "+shortened(p.t.User, maxLine-len("user ")-len(when))+when)
	x := edge + 5*pixel
	entry := func(width px, draw func(x px), text string) {
		draw(x)
		p.text("q", "start", x+width, 76*pixel, text)
		x += width + px(len(text))*7*pixel + 26*pixel
	}
	const middle = 71*pixel + pixel/2
	mark := func(kind replay.Kind, text string) {
		entry(10*pixel, func(x px) { p.shape(shapes[kind], x, middle) }, text)
	}
	count := func(kind replay.Kind, n int64) {
		if p.compares() {
			mark(kind, shapes[kind])
		} else {
			mark(kind, fmt.Sprintf("%d %s", n, shapes[kind]))
		}
	}
	delayed := slices.ContainsFunc(p.all, func(t *replay.Timeline) bool { return t.Delayed > 0 })
	count(replay.Allowed, p.t.Allowed)
	if p.compares() || p.t.Refused > 0 || !delayed {
		count(replay.Refused, p.t.Refused)
	}
	if delayed {
		count(replay.Delayed, p.t.Delayed)
		mark(replay.Runs, "when those run")
	}
	entry(26*pixel, func(x px) { p.line("curve", x-4*pixel, middle, x+18*pixel, middle) }, "activityCount")
	entry(30*pixel, func(x px) { p.line("limit", x-4*pixel, middle, x+22*pixel, middle) }, "limit")
	p.y = 92 * pixel
}

// shortened returns s, which is ASCII, with at most n characters. What it leaves
// out is in the middle.
func shortened(s string, n int) string {
	if len(s) <= n {
		return s
	}
	half := (n - 1) / 2
	return s[:half] + "…" + s[len(s)-half:]
}

// subheading draws the limit of one of several timelines, with the numbers.
func (p *picture) subheading() {
	s := p.t.Policy
	if len(s) > maxTitle {
		s = fmt.Sprintf("%d limits", len(p.t.Panels))
	}
	p.y += 24 * pixel
	p.text("b", "start", edge, p.y, s)
	numbers := fmt.Sprintf("%d allowed, %d refused", p.t.Allowed, p.t.Refused)
	if p.t.Delayed > 0 {
		numbers += fmt.Sprintf(", %d delayed", p.t.Delayed)
	}
	p.text("q", "end", right, p.y, numbers)
	p.y += 14 * pixel
}

// A canvas is an SVG document that is being written. It escapes text, which can
// be anything. It does not escape classes and shapes, which this package
// defines.
type canvas struct{ bytes.Buffer }

// px is a length in tenths of a pixel. Lengths are whole numbers, so that a
// picture has the same bytes on every machine.
type px int64

const pixel px = 10

// String returns the length in pixels, as SVG writes it.
func (n px) String() string { return strconv.FormatFloat(float64(n)/float64(pixel), 'f', -1, 64) }

func (c *canvas) add(format string, args ...any) { _, _ = fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) rect(class string, x, y, width, height px) {
	c.add(`<rect class="%s" x="%v" y="%v" width="%v" height="%v"/>`, class, x, y, width, height)
}

func (c *canvas) line(class string, x1, y1, x2, y2 px) {
	c.add(`<path class="%s" d="M%v %vL%v %v"/>`, class, x1, y1, x2, y2)
}

// shape draws one of the shapes that style defines, with its center at (x, y).
func (c *canvas) shape(id string, x, y px) { c.add(`<use href="#%s" x="%v" y="%v"/>`, id, x, y) }

// text writes text on the baseline y. Anchor is the part of the text that is at
// x: start, middle or end.
func (c *canvas) text(class, anchor string, x, y px, text string) {
	c.add(`<text class="%s" text-anchor="%s" x="%v" y="%v">%s</text>`, class, anchor, x, y, escape(text))
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer returns no errors
	return b.String()
}

// style gives each kind of mark its own shape and its own color, so that a
// reader needs only one of the two. The picture has a background, because a
// page can be dark while the reader's system is light.
const style = `<style>
text{font:13px system-ui,-apple-system,"Segoe UI","Liberation Sans",Arial,sans-serif;fill:#1f2328}
.t{font-size:17px;font-weight:600}
.q{fill:#59636e}
.s{font-size:12px;fill:#59636e}
.b{font-weight:600}
.w{font-weight:600;fill:#b54708}
.bg{fill:#fff}
.odd{fill:#f1f4f7}
.lane{fill:#fdf0e9}
.axis,.border,.curve,.limit,.bracket,.over{fill:none;stroke-width:1}
.axis{stroke:#818b98}
.border{stroke:#818b98;stroke-dasharray:2 3}
.area{fill:#0969da;fill-opacity:.13}
.curve{stroke:#0969da;stroke-width:1.5}
.limit{stroke:#1f2328;stroke-width:1.5;stroke-dasharray:7 4}
.bracket{stroke:#59636e;stroke-width:1.5}
.over{stroke:#b54708;stroke-width:2}
.allowed{fill:#0969da;stroke:#fff;stroke-width:.8}
.refused{fill:none;stroke:#c4420a;stroke-width:2.2}
.delayed{fill:#8d3d9e}
.runs{fill:#fff;stroke:#8d3d9e;stroke-width:1.6}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}.q,.s{fill:#9ea7b3}.w{fill:#ff9a4d}
.bg{fill:#0d1117}.odd{fill:#161c24}.lane{fill:#2a1a12}
.axis,.border{stroke:#767e89}
.area{fill:#4c9bff;fill-opacity:.2}.curve{stroke:#4c9bff}
.limit{stroke:#e6edf3}.bracket{stroke:#9ea7b3}.over{stroke:#ff9a4d}
.allowed{fill:#4c9bff;stroke:#0d1117}.refused{stroke:#ff8a50}.delayed{fill:#d492e6}.runs{fill:#0d1117;stroke:#d492e6}
}
</style>
<defs>
<circle id="allowed" class="allowed" r="3.6"/>
<path id="refused" class="refused" d="M-3.2-3.2L3.2 3.2M-3.2 3.2L3.2-3.2"/>
<path id="delayed" class="delayed" d="M0-4.8L4.8 0L0 4.8L-4.8 0Z"/>
<path id="runs" class="runs" d="M0-4.2L4.2 0L0 4.2L-4.2 0Z"/>
</defs>`
