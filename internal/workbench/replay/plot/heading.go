package plot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/workbench/replay"
)

const edge = 16 * pixel // left of the headings

func (p *picture) title() string {
	if p.compares() {
		return fmt.Sprintf("%s: %d limits compared", p.t.Activity, len(p.all))
	}
	s := p.t.Activity + ": " + p.t.Policy
	if len(s) > longestTitle {
		s = fmt.Sprintf("%s: %d limits", p.t.Activity, len(p.t.Panels))
	}
	return s
}

// description returns the picture in words, for readers who cannot see it.
func (p *picture) description() string {
	if !p.compares() {
		return fmt.Sprintf("%d requests of the user %s from %s: %s", p.t.Requests, p.t.User, period(p.t), outcome(p.t))
	}
	parts := []string{fmt.Sprintf("%d requests of the user %s from %s.", p.t.Requests, p.t.User, period(p.t))}
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
	if !p.t.Whole {
		when = " at the worst" + when
	}
	p.text("q", "start", edge, 51*pixel, "user "+shortened(p.t.User, longestLine-len("user ")-len(when))+when)
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
	if len(s) > longestTitle {
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
