package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/workbench/replay"
	. "github.com/cric-talk/guards/internal/workbench/replay/plot"
)

// sample returns a timeline with every kind of mark and two panels, one with
// windows.
func sample() *replay.Timeline {
	const start = 1_767_571_200_000
	return &replay.Timeline{
		Activity: "act", Policy: "2/1m", User: "u1", From: start, To: start + 120_000, Requests: 60, Allowed: 3, Refused: 50, Delayed: 7,
		Panels: []replay.Panel{
			{
				Name: "minute", Limit: 2, Windows: windows(start, start+120_000, 60_000),
				Steps: []replay.Step{{At: start}, {At: start + 1000, Used: 2}, {At: start + 60_000}},
				Marks: []replay.Mark{
					{At: start, Kind: replay.Allowed, Used: 1, N: 1}, {At: start + 119_999, Kind: replay.Allowed, Used: 2, N: 2},
					{At: start + 50, Kind: replay.Refused, Used: 2, N: 50}, {At: start + 119_999, Kind: replay.Delayed, Used: 2, N: 7},
					{At: start + 60_000, Kind: replay.Runs, Used: 1, N: 1},
				},
			},
			{Name: "bucket", Limit: 15, Steps: []replay.Step{{At: start, Used: 20}}, Marks: []replay.Mark{{At: start, Kind: replay.Allowed, Used: 20, N: 1}}},
		},
		Densest: replay.Densest{Window: 60_000, Limit: 2, N: 3, From: start, To: start + 59_000},
	}
}

// windows returns windows of a length that begin in a period.
func windows(from, to, length int64) (all []policy.Window) {
	for ; from <= to; from += length {
		all = append(all, policy.Window{Key: from / length, Start: from, End: from + length})
	}
	return all
}

func draw(t *testing.T, line *replay.Timeline) string {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, SVG(&b, line))
	return b.String()
}

// elements parses the picture as strict XML.
func elements(t *testing.T, svg string) (all []xml.StartElement, text string) {
	t.Helper()
	var words strings.Builder
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, words.String()
		}
		if err != nil {
			t.Fatalf("the picture is not valid XML: %v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			all = append(all, token.Copy())
		case xml.CharData:
			words.Write(token)
		}
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// number returns an attribute that is a number, or 0.
func number(e xml.StartElement, name string) float64 {
	n, _ := strconv.ParseFloat(attr(e, name), 64)
	return n
}

// ticks returns where the labels of times are on the axis, from the left.
func ticks(all []xml.StartElement) (at []float64) {
	for _, e := range all {
		if e.Name.Local == "text" && attr(e, "class") == "s" && attr(e, "text-anchor") == "middle" && number(e, "y") > 200 {
			at = append(at, number(e, "x"))
		}
	}
	return at
}

func TestEachKindHasAShape(t *testing.T) {
	all, text := elements(t, draw(t, sample()))
	shapes := map[string]int{}
	for _, e := range all {
		if e.Name.Local == "use" {
			shapes[attr(e, "href")]++
		}
	}
	// The legend has one of each. The 50 refused requests are one pile, which
	// is cut and has 7 marks and a number. The 7 delayed requests are a pile of
	// 7 marks.
	want := map[string]int{"#allowed": 1 + 3, "#refused": 1 + 7, "#delayed": 1 + 7, "#runs": 1 + 1}
	for shape, n := range want {
		if shapes[shape] != n {
			t.Errorf("%d of %s, want %d", shapes[shape], shape, n)
		}
	}
	testkit.Contains(t, "the picture", text,
		"act: 2/1m", "user u1 at the worst, 5 January 2026 00:00:00 to 00:02:00 UTC", "3 allowed", "50 refused", "7 delayed", "when those run",
		"held up", "limit 2", "limit 15", "limit “minute”", "00:01:30", "most run in any minute: 3, here in 59 s",
	)
	testkit.Contains(t, "a pile that is cut", draw(t, sample()), ">50<")
}

// Everything is inside the picture, whatever the counts and the length of the
// period.
func TestEverythingIsInsideThePicture(t *testing.T) {
	for _, length := range []time.Duration{time.Millisecond, time.Second, 7 * time.Minute, time.Hour, 50 * time.Hour, 4000 * 24 * time.Hour} {
		line := sample()
		scale := func(at *int64) { *at = line.From + (*at-line.From)*length.Milliseconds()/120_000 }
		for i := range line.Panels {
			for j := range line.Panels[i].Marks {
				scale(&line.Panels[i].Marks[j].At)
			}
			for j := range line.Panels[i].Steps {
				scale(&line.Panels[i].Steps[j].At)
			}
		}
		line.Panels[0].Windows = windows(line.From, line.From+length.Milliseconds(), max(1, length.Milliseconds()/7))
		line.Densest.From, line.Densest.To = line.From, line.From+length.Milliseconds()-1
		line.To = line.From + length.Milliseconds()
		all, _ := elements(t, draw(t, line))
		height := number(all[0], "height")
		for _, e := range all[1:] {
			x, y := number(e, "x"), number(e, "y")
			if x < 0 || x+number(e, "width") > 800 || y < 0 || y+number(e, "height") > height {
				t.Errorf("%v: %s at %v, %v is outside of 800 by %v", length, e.Name.Local, x, y, height)
			}
		}
		if n := len(ticks(all)); n < 2 || n > 10 {
			t.Errorf("%v: %d times on the axis, want 2 to 10", length, n)
		}
	}
}

// Text from a file cannot become an element of the picture.
func TestTextIsEscaped(t *testing.T) {
	line := sample()
	line.User, line.Activity, line.Panels[0].Name = `</text><script>"&'`, "a\x00\xff<b>", "]]>"
	all, text := elements(t, draw(t, line))
	for _, e := range all {
		if name := e.Name.Local; name == "script" || name == "b" {
			t.Errorf("the picture has an element %s, want the text escaped", name)
		}
	}
	if !strings.Contains(text, `user </text><script>"&'`) || !strings.Contains(text, "]]>") {
		t.Errorf("the text is lost: %s", text)
	}
}

// A long title and a long id of a user are shortened, so that their lines end inside the picture.
// The description has the whole id.
func TestLongTextsFitTheirLines(t *testing.T) {
	line := sample()
	user := strings.Repeat("long-id+", 16)
	line.Policy, line.User, line.From = strings.Repeat("minute: 10/1m, ", 8), user, line.From-24*3600*1000 // the period has two dates
	_, text := elements(t, draw(t, line))
	if !strings.Contains(text, "act: 2 limits") || !strings.Contains(text, "of the user "+user+" from") {
		t.Errorf("the title is not shortened, or the description does not name the user %s:\n%s", user, text)
	}
	for part := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(part, "user ") && (utf8.RuneCountInString(part) > 105 || !strings.HasPrefix(part, "user "+user[:10]) || !strings.Contains(part, user[len(user)-10:]+" at the worst, 4 January 2026 ")) {
			t.Errorf("the line is %q", part)
		}
	}
}

func TestAnEmptyTimeline(t *testing.T) {
	line := &replay.Timeline{Activity: "act", User: "u1", To: 1, Panels: []replay.Panel{{Limit: 1}}}
	if all, text := elements(t, draw(t, line)); len(all) < 10 || strings.Contains(text, "most") {
		t.Errorf("%d elements, %q", len(all), text)
	}
}

// A comparison has a subheading with the numbers of each limit.
func TestComparison(t *testing.T) {
	var b bytes.Buffer
	testkit.OK(t, SVG(&b, sample(), sample()))
	if _, text := elements(t, b.String()); !strings.Contains(text, "act: 2 limits compared") || strings.Count(text, "3 allowed, 50 refused, 7 delayed") != 4 {
		t.Errorf("the picture says %s", text) // once in the description, and once above the panels
	}
}

// The label of a limit begins inside the picture, in the widest of the usual fonts. In
// DejaVu Sans Bold of 13 pixels, a digit has 9.05 pixels, and "limit " has 37.7.
func TestTheLabelOfALimitIsWhole(t *testing.T) {
	for _, limit := range []int64{1, 100, 1000, 25_000, 1_000_000} {
		line := sample()
		line.Panels[0].Limit = limit
		all, text := elements(t, draw(t, line))
		label := "limit " + strconv.FormatInt(limit, 10)
		if !strings.Contains(text, label+"\n") {
			t.Fatalf("the picture does not say %q", label)
		}
		for _, e := range all {
			if e.Name.Local != "text" || attr(e, "text-anchor") != "end" || attr(e, "class") != "b" {
				continue
			}
			if x := number(e, "x"); x < 37.7+9.05*float64(len(label)-len("limit ")) {
				t.Errorf("%q ends at %v, so its beginning is outside of the picture", label, x)
			}
		}
	}
}

func TestTimesAreInHoursAndMinutes(t *testing.T) {
	for minutes, want := range map[int64]string{5: "5 min", 59: "59 min", 60: "1 h 0 min", 69: "1 h 9 min", 23*60 + 59: "23 h 59 min", 48 * 60: "48 h"} {
		line := sample()
		line.Densest.To = line.Densest.From + minutes*60_000
		_, text := elements(t, draw(t, line))
		testkit.Contains(t, "the picture", text, "here in "+want+"\n")
	}
}

// The labels of times stay apart where the picture leaves out windows.
func TestLabelsBesideACutStayApart(t *testing.T) {
	for _, gap := range []int64{1, 59_000, 60_000, 3600_000, 40 * 86_400_000} {
		line := sample()
		cut := replay.Cut{From: line.From + 50_000, To: line.From + 50_000 + gap}
		line.Cuts, line.To = []replay.Cut{cut}, line.To+gap
		all, text := elements(t, draw(t, line))
		at := ticks(all)
		for i := range at[1:] {
			if apart := at[i+1] - at[i]; apart < 55 {
				t.Errorf("with a cut of %d ms, two labels are %v pixels apart", gap, apart)
			}
		}
		testkit.Contains(t, "the picture", text, "without empty windows")
	}
}
