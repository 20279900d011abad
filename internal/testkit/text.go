package testkit

import (
	"strings"
	"testing"
)

// Contains reports each of these parts that a text lacks. what names the text, such as "the log".
func Contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}
