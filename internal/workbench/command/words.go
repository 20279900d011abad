package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// wait returns a time to wait in words, rounded up, so that nobody comes back
// too early.
func wait(d time.Duration) string {
	ms := int64((d + time.Millisecond - 1) / time.Millisecond)
	s := (ms + 999) / 1000
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 2*3600:
		return fmt.Sprintf("%d min", (s+59)/60)
	}
	return fmt.Sprintf("%d h %d min", (s+59)/3600, (s+59)%3600/60)
}

// waitMs returns what wait returns, for a number of milliseconds. It returns an
// empty text for 0.
func waitMs(ms int64) string {
	if ms == 0 {
		return ""
	}
	return wait(time.Duration(ms) * time.Millisecond)
}

// grouped returns n, which must not be negative, with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// several returns a number with a noun, such as "1 item" or "1,200 items".
func several(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

// visible returns s with escapes for the characters that can't be seen, because
// they could control the terminal.
func visible(s string) string {
	var b strings.Builder
	for _, c := range s {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
	}
	return b.String()
}

// sentence describes a change of the live limits. It does not name a user.
func sentence(c live.Change) string {
	text := c.Op + " " + c.Activity
	switch c.Op {
	case "": // older code wrote the sentence itself
		return c.What
	case "grant":
		return fmt.Sprintf("grant a user %s%s until %s", c.Role, c.Tier, c.Until.Format(time.RFC3339))
	case "revoke":
		return "revoke a user's grants"
	case "forget":
		return "forget the grants of a user"
	}
	if c.Limit != "" {
		text += " " + c.Limit
	}
	if c.Tier != "" {
		text += " for tier " + c.Tier
	}
	if c.Mode != "" {
		text += " to mode " + c.Mode
	}
	return text
}

// verdict returns in one word what a guard decided.
func (c console) verdict(allowed bool, reason string) string {
	switch {
	case allowed:
		return c.paint(green, "allowed")
	case reason == string(ratelimit.Delayed):
		return c.paint(yellow, "delayed")
	}
	return c.paint(red, "refused")
}
