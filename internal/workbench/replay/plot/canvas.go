package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
)

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
