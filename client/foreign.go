package client

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A text from outside that becomes part of a message has at most so many
// characters.
const (
	maxText    = 500
	maxExcerpt = 100 // of an answer
)

// shortID is the length of the longest id that is hidden only as a whole word. A
// short id such as "a" is part of ordinary words. Longer ids are hidden anywhere.
const shortID = 7

// foreign returns a text from outside for a message: without the call's own ids,
// and not too long.
func (c *call) foreign(text string) string {
	ids := []string{c.event.UserID, c.event.RequestID}
	for _, id := range slices.AppendSeq(ids, maps.Values(c.event.Subjects)) {
		for _, form := range []string{escaped(id), quoted(id), id} {
			if form != "" {
				text = hide(text, form, len(id) <= shortID)
			}
		}
	}
	return first(maxText, text)
}

// hide replaces an id in a text. With whole set, it leaves an id alone that has a
// letter or a digit before or after it.
func hide(text, id string, whole bool) string {
	for from := 0; ; {
		at := strings.Index(text[from:], id)
		if at < 0 {
			return text
		}
		at += from
		end := at + len(id)
		if whole && (isWord(text, at-1) || isWord(text, end)) {
			from = at + 1
			continue
		}
		text = text[:at] + "***" + text[end:]
		from = at + len("***")
	}
}

// isWord reports whether text has a letter or a digit at i.
func isWord(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	c := text[i]
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// noAnswer returns an ErrAnswer with the beginning of what the function answered.
func (c *call) noAnswer(text string) *Error {
	excerpt := quoted(first(maxExcerpt, c.foreign(text)))
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
