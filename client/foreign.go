package client

import (
	"strconv"
	"strings"
)

// A text from outside that becomes part of a message has at most so many
// characters.
const (
	mostText    = 500
	mostExcerpt = 100 // of an answer
)

// foreign returns a text from outside for a message: without the call's own ids,
// and not too long.
func (c *call) foreign(text string) string {
	for _, id := range []string{c.event.UserID, c.event.RequestID} {
		for _, form := range []string{escaped(id), quoted(id), id} {
			if form != "" {
				text = strings.ReplaceAll(text, form, "***")
			}
		}
	}
	return first(mostText, text)
}

// noAnswer returns an ErrAnswer with the beginning of what the function answered.
func (c *call) noAnswer(text string) *Error {
	excerpt := quoted(first(mostExcerpt, c.foreign(text)))
	return c.answer("answered something that no guard answers: %s. Check the function's name.", excerpt)
}

// escaped returns a text as encoding/json writes it, for example a\u003cb.
func escaped(text string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(quoted(text))
}

// quoted returns a text with escapes only for quotes, backslashes and characters
// that can't be printed.
func quoted(text string) string {
	q := strconv.Quote(text)
	return q[1 : len(q)-1]
}

// first returns the first n characters of a text.
func first(n int, text string) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n])
	}
	return text
}
