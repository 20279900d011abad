package command

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/workbench/words"
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
	case s <= 59*60:
		return fmt.Sprintf("%d min", (s+59)/60)
	case s < 3*24*3600:
		return fmt.Sprintf("%d h %d min", (s+59)/3600, (s+59)%3600/60)
	}
	return fmt.Sprintf("%d d %d h", (s+3599)/86400, (s+3599)%86400/3600)
}

// waitMs returns a time to wait in words, or an empty text for 0.
func waitMs(ms int64) string {
	if ms == 0 {
		return ""
	}
	return wait(time.Duration(ms) * time.Millisecond)
}

func grouped(n int64) string { return words.Grouped(n) }

func plural(n int64, noun string) string { return words.Several(n, noun) }

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

// sentence describes a change of the live limits. It names no user, and no id of a subject.
func sentence(c liveedit.Change) string {
	switch c.Op {
	case "": // older code wrote the sentence itself
		return c.What
	case "grant":
		return fmt.Sprintf("grant a %s %s%s until %s", cmp.Or(c.Activity, "user"), c.Role, c.Tier, c.Until.Format(time.RFC3339))
	case "revoke":
		return "revoke a " + cmp.Or(c.Activity, "user") + "'s grants"
	case "forget":
		return "forget the grants of an erased user or subject"
	case "block":
		return fmt.Sprintf("block a %s from %s until %s", cmp.Or(c.Subject, "user"), cmp.Or(c.Activity, "all activities"), c.Until.Format(time.RFC3339))
	case "repair":
		return fmt.Sprintf("repair: %d kept, %d dropped", c.Kept, c.Dropped)
	case "import":
		return fmt.Sprintf("import %d live limits and grants", c.Kept)
	case "reset":
		return fmt.Sprintf("reset %s of a %s", c.Activity, cmp.Or(c.Subject, "user"))
	case "unblock":
		return strings.TrimSpace("unblock a " + cmp.Or(c.Subject, "user") + " " + fromOne(c.Activity))
	}
	what := c.Activity
	switch c.Guard {
	case "":
	case "all":
		what = "everything"
	default:
		what = "each activity of " + c.Guard
	}
	text := []string{c.Op, what}
	for _, part := range [][2]string{{"", c.Limit}, {"for tier ", c.Tier}, {"to mode ", c.Mode}, {"", strings.TrimSpace(untilWhen(c.Until))}} {
		if part[1] != "" {
			text = append(text, part[0]+part[1])
		}
	}
	return strings.Join(text, " ")
}

// verdict returns in one word what a guard decided.
func (c session) verdict(allowed bool, reason guards.Reason) string {
	switch {
	case allowed:
		return c.paint(green, "allowed")
	case reason == guards.Delayed:
		return c.paint(yellow, "delayed")
	}
	return c.paint(red, "refused")
}
