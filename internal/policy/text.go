package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Parse reads a policy from its text form, which the package comment shows. The
// error names the mistake and what is accepted.
//
// A limit is an optional kind, then actions/window, then options:
//
//	in Europe/Berlin  day, week, month: the time zone; default: UTC
//	burst 15          bucket: how many actions can come at once; default: the actions
//	keep 1h           bucket: how long an idle item is kept at least
//	max 10000         fixed, bucket, log, sliding: the highest number that a caller can give instead of the actions; default: callers give none
//	ahead 15m         reservoir: how far ahead it gives places; default: not at all
//	for 30m           lockout: how long the attempt that reaches the limit locks
//	to 1d             lockout: each lock lasts twice as long as the last, up to this; default: for
//	prepaid           fixed, bucket, sliding: a busy process takes many actions with one update
//	cost 5            fixed, bucket, log, sliding: how much of the limit (bucket: of the burst) one action takes; default: 1
//
// A window and the values of keep, ahead, for and to are a whole number and a unit: ms, s,
// m, h or d. The window of a fixed limit can also be day, week or month. Commas
// separate several limits, each with a name before a colon.
func Parse(text string) (Policy, error) {
	var rates []Rate
	for part := range strings.SplitSeq(text, ",") {
		r, err := parseRate(part)
		if err != nil {
			return Policy{}, fmt.Errorf("limit is %s: %w", quote(text), err)
		}
		rates = append(rates, r)
	}
	p, err := newPolicy(rates)
	if err != nil {
		return Policy{}, fmt.Errorf("limit is %s: %w", quote(text), err)
	}
	return p, nil
}

// Must is Parse for a text in code: it panics if the text is wrong.
func Must(text string) Policy {
	p, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// String returns the text form, which Parse reads back. It is empty for the zero Policy.
func (p Policy) String() string {
	texts := make([]string, len(p.limits))
	for i, l := range p.limits {
		texts[i] = l.rate.String()
	}
	return strings.Join(texts, ", ")
}

// MarshalText implements [encoding.TextMarshaler] with the text form.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] with the text form.
func (p *Policy) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// String returns the text form of one limit.
func (r Rate) String() string {
	var b strings.Builder
	if r.Name != "" {
		b.WriteString(r.Name + ": ")
	}
	if r.Kind != kinds[0].Name {
		b.WriteString(r.Kind + " ")
	}
	b.WriteString(strconv.FormatInt(r.Limit, 10) + "/" + r.span())
	option := func(name, value string, set bool) {
		if set {
			b.WriteString(" " + name + " " + value)
		}
	}
	option("burst", strconv.FormatInt(r.Burst, 10), r.Burst != 0 && r.Burst != r.Limit)
	option("max", strconv.FormatInt(r.Max, 10), r.Max != 0)
	option("ahead", span(r.Ahead), r.Ahead != 0)
	option("for", span(r.Lock), r.Lock != 0)
	option("to", span(r.MaxLock), r.MaxLock != r.Lock)
	option("keep", span(r.Keep), r.Keep != 0)
	option("cost", strconv.FormatInt(r.Cost, 10), r.Cost != 0)
	if r.Prepaid {
		b.WriteString(" prepaid")
	}
	return b.String()
}

// text returns the text form of one limit, without its name.
func (r Rate) text() string {
	r.Name = ""
	return r.String()
}

// span returns the window in the text form, such as 1m or day in Europe/Berlin.
func (r Rate) span() string {
	if r.Zone != "" {
		return r.Unit + " in " + r.Zone
	}
	return cmp.Or(r.Unit, span(r.Window))
}

// parseRate reads one limit: [name:] [kind] actions/window [option value]...
func parseRate(text string) (r Rate, err error) {
	if name, rest, ok := strings.Cut(text, ":"); ok {
		r.Name, text = strings.TrimSpace(name), rest
		if r.Name == "" {
			return r, fmt.Errorf("there is no name before the colon")
		}
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return r, fmt.Errorf("a limit is empty; want %s", forms())
	}
	k := kinds[0]
	if !strings.Contains(words[0], "/") {
		named, ok := kindNamed(words[0])
		if !ok {
			return r, fmt.Errorf("%s is not a kind of limit and has no slash; want %s", quote(words[0]), forms())
		}
		k, words = named, words[1:]
	}
	r.Kind = k.Name
	if len(words) == 0 {
		return r, fmt.Errorf("%s has no actions and no window, as in %s", k.Name, k.Examples[0])
	}
	actions, window, _ := strings.Cut(words[0], "/")
	if r.Limit = whole(actions, million); r.Limit == 0 {
		return r, fmt.Errorf("actions are %s, want 1 to %d, as in %s", quote(actions), million, k.Examples[0])
	}
	if r.Window = lengths[window]; r.Window != 0 && k.takes("in") {
		r.Unit = window
	} else if r.Window = parseSpan(window); r.Window == 0 {
		meant := meantSpan(window)
		if unit := strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(window), "1"), "s"); k.takes("in") && lengths[unit] != 0 {
			meant = unit
		}
		if meant != "" {
			return r, fmt.Errorf("window is %s, want %s, as in %s", quote(window), meant, strings.TrimPrefix(k.Name+" ", kinds[0].Name+" ")+actions+"/"+meant)
		}
		want := spans
		if k.takes("in") {
			want += ", or day, week or month"
		}
		return r, fmt.Errorf("window is %s, want %s, as in %s", quote(window), want, k.Examples[0])
	}
	return r, r.parseOptions(k, words[1:])
}

// What whole and parseSpan accept.
const (
	numbers = "1 to 1000000"
	spans   = "1ms to 366d (units ms, s, m, h, d)"
)

// parseOptions reads what follows the rate.
func (r *Rate) parseOptions(k Kind, words []string) error {
	if k.takes("burst") {
		r.Burst = r.Limit
	}
	seen := map[string]bool{}
	for len(words) > 0 {
		option, value := words[0], 1 // where the value is
		if option == "prepaid" {
			value = 0
		}
		switch {
		case !k.takes(option):
			return fmt.Errorf("%s is not an option of a %s limit; %s", quote(option), k.Name, k.wants(option))
		case seen[option]:
			return fmt.Errorf("option %s is repeated", option)
		case len(words) <= value:
			return fmt.Errorf("option %s has no value", option)
		}
		seen[option] = true
		if want, ok := r.setOption(option, words[value]); !ok {
			return fmt.Errorf("%s is %s, want %s", option, quote(words[value]), want)
		}
		words = words[value+1:]
	}
	r.MaxLock = cmp.Or(r.MaxLock, r.Lock)
	if r.Cost == 1 { // the default
		r.Cost = 0
	}
	return nil
}

// setOption sets an option. It returns what the option accepts, and whether value is that.
func (r *Rate) setOption(option, value string) (want string, ok bool) {
	switch option {
	case "prepaid":
		r.Prepaid = true
		return "", true
	case "burst", "max", "cost":
		at := map[string]*int64{"burst": &r.Burst, "max": &r.Max, "cost": &r.Cost}[option]
		*at = whole(value, million)
		return numbers, *at > 0
	case "ahead", "keep", "for", "to":
		at := map[string]*time.Duration{"ahead": &r.Ahead, "keep": &r.Keep, "for": &r.Lock, "to": &r.MaxLock}[option]
		*at = parseSpan(value)
		return cmp.Or(meantSpan(value), spans), *at > 0
	default: // in
		if r.Zone = value; value == "UTC" {
			r.Zone = ""
		}
		return "a time zone such as Europe/Berlin, after a day, week or month", r.Unit != ""
	}
}

func (k Kind) takes(option string) bool { return slices.Contains(k.options, option) }

// wants returns a hint for an option that k does not take.
func (k Kind) wants(option string) string {
	if why, ok := k.without[option]; ok {
		return why
	}
	for _, other := range kinds {
		if other.takes(option) {
			return "a " + other.Name + " limit has it, as in " + other.Examples[0]
		}
	}
	switch {
	case strings.ContainsAny(option, ":/"):
		return "a comma separates limits, as in " + severalExample
	case len(k.options) == 0:
		return "it has none"
	}
	return "want " + strings.Join(k.options, " or ")
}

// forms lists an example of each kind.
func forms() string {
	examples := make([]string, len(kinds))
	for i, k := range kinds {
		examples[i] = k.Examples[0]
	}
	return strings.Join(examples, ", ")
}

// units are the units of time in the text form, the largest first.
var units = []struct {
	name string
	of   time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// span writes a time as a whole number of the largest unit that divides it.
func span(d time.Duration) string {
	for _, u := range units {
		if d%u.of == 0 && d != 0 {
			return strconv.FormatInt(int64(d/u.of), 10) + u.name
		}
	}
	return d.String()
}

// parseSpan reads a time of at most maxWindow. It returns 0 for other texts.
func parseSpan(text string) time.Duration {
	digits := strings.TrimRight(text, "dhms")
	for _, u := range units {
		if text[len(digits):] == u.name {
			return time.Duration(whole(digits, int64(maxWindow/u.of))) * u.of
		}
	}
	return 0
}

// spelled are the words that people write for a unit. A week is seven of its unit.
var spelled = map[string]string{
	"msec": "ms", "millisecond": "ms", "sec": "s", "second": "s", "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d", "week": "d", "w": "d",
	"ms": "ms", "s": "s", "m": "m", "h": "h", "d": "d",
}

// meantSpan returns the text form of a time with its unit in another spelling, such as 1h
// for 1hour, hour or 1H. It is empty for other texts.
func meantSpan(text string) string {
	digits := strings.TrimRightFunc(text, unicode.IsLetter)
	word := strings.ToLower(text[len(digits):])
	if text[len(digits):] == "M" { // a minute or a month
		return ""
	}
	unit := cmp.Or(spelled[word], spelled[strings.TrimSuffix(word, "s")])
	n := whole(cmp.Or(strings.TrimSpace(digits), "1"), million)
	if word == "w" || strings.HasPrefix(word, "week") {
		n *= 7
	}
	if meant := parseSpan(strconv.FormatInt(n, 10) + unit); meant != 0 {
		return span(meant)
	}
	return ""
}

// whole reads a number from 1 to most in plain digits, without leading zeros.
// It returns 0 if digits is not such a number.
func whole(digits string, most int64) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > most || strconv.FormatInt(n, 10) != digits {
		return 0
	}
	return n
}

// quote escapes what somebody typed, and cuts it after 60 characters.
func quote(text string) string { return fmt.Sprintf("%+.60q", text) }
