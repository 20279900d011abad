package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
)

// A canvas is an SVG document in the making. What it takes as text may be
// anything; classes and shapes are this package's own.
type canvas struct{ bytes.Buffer }

// px is a length in tenths of a pixel: whole numbers are the same on every
// machine, and so are the picture's bytes.
type px int64

const pixel px = 10

// String is the length as SVG has it.
func (n px) String() string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	s := sign + strconv.FormatInt(int64(n/pixel), 10)
	if n%pixel != 0 {
		s += "." + strconv.FormatInt(int64(n%pixel), 10)
	}
	return s
}

func (c *canvas) add(format string, args ...any) { _, _ = fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) rect(class string, x, y, width, height px) {
	c.add(`<rect class="%s" x="%v" y="%v" width="%v" height="%v"/>`, class, x, y, width, height)
}

func (c *canvas) line(class string, x1, y1, x2, y2 px) {
	c.add(`<path class="%s" d="M%v %vL%v %v"/>`, class, x1, y1, x2, y2)
}

// shape draws one of the shapes that the document defines, around a point.
func (c *canvas) shape(id string, x, y px) { c.add(`<use href="#%s" x="%v" y="%v"/>`, id, x, y) }

// text writes on a baseline; anchor is the part of the text that stands at x:
// start, middle or end.
func (c *canvas) text(class, anchor string, x, y px, text string) {
	c.add(`<text class="%s" text-anchor="%s" x="%v" y="%v">%s</text>`, class, anchor, x, y, escape(text))
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes all
	return b.String()
}
