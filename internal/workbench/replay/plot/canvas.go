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
