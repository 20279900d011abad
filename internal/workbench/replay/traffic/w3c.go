package traffic

import (
	"bytes"
	"slices"
)

// w3cFields returns the form and the splitter of W3C's extended format. Header is
// what follows #Fields:, and line is the first line below it: CloudFront
// separates fields by tabs, and others by spaces.
func w3cFields(header, line []byte) (*form, *textSplitter) {
	f, s := *w3c, &textSplitter{separator: ' '}
	for _, name := range bytes.Fields(header) {
		s.names = append(s.names, string(name))
	}
	if bytes.IndexByte(line, '\t') >= 0 {
		s.separator = '\t'
	}
	if slices.Contains(s.names, "x-edge-location") {
		f.name = "a CloudFront log"
	}
	s.name = f.name
	return &f, s
}
