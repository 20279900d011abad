package plot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/workbench/replay"
)

// panel draws one limit. At the top are piles of the requests that it held up.
// Below them is the curve of the count, with a line at the limit.
func (p *picture) panel(of *replay.Panel) {
	height := plotHeight
	if len(p.t.Panels) > 1 || p.compares() {
		height = oneOfMany
	}
	if len(p.t.Panels) > 1 {
		p.text("b", "start", p.left, p.y+12*pixel, "limit “"+of.Name+"”")
		p.y += 20 * pixel
	}
	piles, rows := p.piles(of)
	lane := px(0)
	if rows > 0 {
		lane = px(rows)*pileRow + 8*pixel
	}
	top := p.y
	plot := scale{top: top + lane, bottom: top + lane + height, most: of.Limit}
	for _, s := range of.Steps {
		plot.most = max(plot.most, s.Used)
	}
	p.windows(of, plot.top, plot.bottom)
	if lane > 0 {
		p.rect("lane", p.left, top, right-p.left, lane)
		p.pile(piles, top+lane-8*pixel)
		p.text("s", "end", p.left-labelEnd, top+lane-5*pixel, held(of))
	}
	for _, w := range of.Windows {
		if w.Start >= p.t.From {
			p.line("border", p.x(w.Start), top, p.x(w.Start), plot.bottom)
		}
	}
	p.curve(of, plot)
	for _, c := range p.t.Cuts { // two lines, because a border is one
		x := p.x(c.To)
		p.line("axis", x-2*pixel, top, x-2*pixel, plot.bottom)
		p.line("axis", x+2*pixel, top, x+2*pixel, plot.bottom)
	}
	p.scaleMarks(of, plot)
	for _, m := range of.Marks {
		if m.Kind == replay.Allowed || m.Kind == replay.Runs {
			p.shape(shapes[m.Kind], p.x(m.At), plot.y(m.Used))
		}
	}
	p.y = plot.bottom
	if of != &p.t.Panels[len(p.t.Panels)-1] {
		p.y += 18 * pixel
	}
}

// A scale maps counts to heights. The count 0 is at the bottom.
type scale struct {
	top, bottom px
	most        int64
}

func (s scale) y(count int64) px {
	const headroom = 12 * pixel
	return s.bottom - px(int64(s.bottom-s.top-headroom)*count/s.most)
}

// windows shades every other window.
func (p *picture) windows(of *replay.Panel, top, bottom px) {
	for _, w := range of.Windows {
		if w.Key%2 == 1 {
			from, to := max(p.left, p.x(w.Start)), min(right, p.x(w.End))
			p.rect("odd", from, top, max(0, to-from), bottom-top)
		}
	}
}

// curve draws the count and fills the area below it.
func (p *picture) curve(of *replay.Panel, plot scale) {
	var d strings.Builder
	for i, s := range of.Steps {
		if x, y := p.x(s.At), plot.y(s.Used); i == 0 {
			fmt.Fprintf(&d, "M%v %v", x, y)
		} else {
			fmt.Fprintf(&d, "H%vV%v", x, y)
		}
	}
	if d.Len() == 0 {
		return
	}
	end := p.x(p.t.To)
	fmt.Fprintf(&d, "H%v", end)
	p.add(`<path class="area" d="%sV%vH%vZ"/>`, &d, plot.bottom, p.x(of.Steps[0].At))
	p.add(`<path class="curve" d="%s"/>`, &d)
}

// scaleMarks draws the lines at 0 and at the limit, with their numbers.
func (p *picture) scaleMarks(of *replay.Panel, plot scale) {
	number := func(class string, count int64, text string) {
		p.text(class, "end", p.left-labelEnd, plot.y(count)+4*pixel, text)
	}
	number("s", 0, "0")
	if half := of.Limit / 2; of.Limit%2 == 0 {
		number("s", half, fmt.Sprint(half))
	}
	number("b", of.Limit, limitLabel(of.Limit))
	p.line("limit", p.left, plot.y(of.Limit), right, plot.y(of.Limit))
	p.line("axis", p.left, plot.bottom, right, plot.bottom)
}

// labelEnd is the distance from the end of a label to the axis.
const labelEnd = 8 * pixel

func limitLabel(limit int64) string { return fmt.Sprint("limit ", limit) }

// widthOf returns the width of a label of a limit in the widest of the usual fonts, which is
// DejaVu Sans Bold.
func widthOf(label string) px {
	const word, digit = 38 * pixel, 91 * pixel / 10
	return word + px(len(label)-len("limit "))*digit
}

func held(of *replay.Panel) string {
	var kinds []string
	for _, kind := range []replay.Kind{replay.Refused, replay.Delayed} {
		if slices.ContainsFunc(of.Marks, func(m replay.Mark) bool { return m.Kind == kind }) {
			kinds = append(kinds, shapes[kind])
		}
	}
	if len(kinds) > 1 {
		return "held up"
	}
	return kinds[0]
}

// A pile counts the requests that were held up at about the same time.
type pile struct {
	x                px
	delayed, refused int64
}

// piles sorts the requests that were held up into piles. It also returns the
// number of marks in the highest pile.
func (p *picture) piles(of *replay.Panel) (piles []pile, rows int64) {
	marks := slices.DeleteFunc(slices.Clone(of.Marks), func(m replay.Mark) bool { return m.Kind != replay.Refused && m.Kind != replay.Delayed })
	slices.SortStableFunc(marks, func(a, b replay.Mark) int { return int(p.x(a.At) - p.x(b.At)) })
	for _, m := range marks {
		x := p.x(m.At)
		if n := len(piles); n == 0 || x >= piles[n-1].x+pileRow {
			piles = append(piles, pile{x: x})
		}
		last := &piles[len(piles)-1]
		if m.Kind == replay.Delayed {
			last.delayed += m.N
		} else {
			last.refused += m.N
		}
		rows = max(rows, min(highest, last.delayed+last.refused))
	}
	return piles, rows
}

// pile draws piles that stand on ground. A pile that is too high is cut, and
// the number of its requests is written on it if there is room.
func (p *picture) pile(piles []pile, ground px) {
	free := px(0)
	for _, pile := range piles {
		all := pile.delayed + pile.refused
		for row := range min(all, highest) {
			kind := replay.Refused
			if row < pile.delayed {
				kind = replay.Delayed
			}
			if row == highest-1 && all > highest {
				break
			}
			p.shape(shapes[kind], pile.x, ground-px(row)*pileRow)
		}
		if number := fmt.Sprint(all); all > highest && pile.x >= free {
			p.text("s", "middle", pile.x, ground-(highest-1)*pileRow+4*pixel, number)
			free = pile.x + px(len(number)+1)*7*pixel
		}
	}
}

// steps are the possible distances between two labels of times, in milliseconds.
var steps = []int64{
	1, 2, 5, 10, 20, 50, 100, 200, 500,
	1000, 2000, 5000, 10_000, 15_000, 20_000, 30_000,
	60_000, 120_000, 300_000, 600_000, 900_000, 1_200_000, 1_800_000,
	3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
	day, 2 * day, 5 * day, 10 * day, 20 * day, 50 * day, 100 * day, 200 * day, 500 * day, 1000 * day,
}

const day = 86_400_000

// step returns the shortest distance between labels that keeps the labels of an
// axis of ms milliseconds from overlapping.
func step(ms int64) int64 {
	for _, s := range steps {
		most := int64(9)
		if s < 1000 { // labels with milliseconds are longer
			most = 7
		}
		if ms/s < most {
			return s
		}
	}
	return ms
}

// format returns the layout of labels that are step milliseconds apart.
func format(step int64) string {
	switch {
	case step < 1000:
		return "15:04:05.000"
	case step < 60_000:
		return "15:04:05"
	case step < 43_200_000:
		return "15:04"
	case step < day:
		return "2 Jan 15:04"
	}
	return "2 Jan 2006"
}

// room is the least distance between two labels of times. Only those beside a cut can be nearer.
const room = 60 * pixel

// times draws the time axis, in UTC.
func (p *picture) times() {
	by := step(p.t.Shown(p.t.To))
	next := px(0) // where the next label can be
	for at := p.t.From; at <= p.t.To; at++ {
		if at = p.t.Uncut((at + by - 1) / by * by); at > p.t.To {
			break
		}
		x := p.x(at)
		if x < next {
			continue
		}
		next = x + room
		p.line("axis", x, p.y, x, p.y+5*pixel)
		p.text("s", "middle", x, p.y+19*pixel, time.UnixMilli(at).UTC().Format(format(by)))
	}
	p.y += 30 * pixel
}
