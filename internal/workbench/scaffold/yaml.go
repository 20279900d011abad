package scaffold

import (
	"regexp"
	"slices"
	"strings"
)

// A mapping is a block mapping of YAML as text. It keeps comments, tags such as !Ref,
// and the form of each value, because nothing reads the values. Only a value that is
// merged is opened, with [entry.open].
type mapping struct {
	entries []*entry
	tail    []string // comments and empty lines after the last entry
}

// An entry is one key of a mapping.
type entry struct {
	head  []string // comments and empty lines above it
	key   string   // as written, perhaps in quotes
	value string   // what follows the colon on its line; empty: the value is in body, or null
	body  []string // the lines below, without the indentation of the key
}

// parseMapping splits the lines of a block mapping into its entries.
func parseMapping(lines []string) (m mapping) {
	for _, line := range dedent(lines) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' && line[0] == '#':
			m.tail = append(m.tail, line)
		case len(m.entries) > 0 && (line[0] == ' ' || strings.IndexByte("-]}", line[0]) >= 0): // a list needs no indentation
			last := m.entries[len(m.entries)-1]
			last.body = append(append(last.body, m.tail...), line)
			m.tail = nil
		default:
			key, value, _ := cutKey(line)
			m.entries = append(m.entries, &entry{m.tail, key, value, nil})
			m.tail = nil
		}
	}
	return m
}

// lines returns the mapping as text, with this indentation.
func (m mapping) lines(indent string) (lines []string) {
	add := func(texts ...string) {
		for _, text := range texts {
			if text != "" {
				text = indent + text
			}
			lines = append(lines, text)
		}
	}
	for _, e := range m.entries {
		add(e.head...)
		add(strings.TrimSuffix(e.key+": "+e.value, " "))
		add(e.body...)
	}
	add(m.tail...)
	return lines
}

// find returns the entry with a name, or nil.
func (m mapping) find(name string) *entry {
	i := slices.IndexFunc(m.entries, func(e *entry) bool { return e.name() == name })
	if i < 0 {
		return nil
	}
	return m.entries[i]
}

// remove removes an entry with the comments above it, but not an empty line.
func (m *mapping) remove(e *entry) {
	i := slices.Index(m.entries, e)
	m.entries = slices.Delete(m.entries, i, i+1)
	if blank := slices.Index(e.head, ""); blank >= 0 && i < len(m.entries) && !slices.Contains(m.entries[i].head, "") {
		m.entries[i].head = slices.Concat([]string{""}, m.entries[i].head)
	}
}

// name returns the key without quotes.
func (e *entry) name() string { return strings.Trim(e.key, `"'`) }

// plain returns the value on the key's line without its anchor and its comment, and the
// name of the anchor.
func (e *entry) plain() (text, anchor string) {
	text = e.value
	if found := anchorDefined.FindStringSubmatch(text); found != nil {
		text, anchor = text[len(found[0]):], found[1]
	}
	if strings.HasPrefix(text, "#") {
		text = ""
	}
	return text, anchor
}

var (
	anchorDefined = regexp.MustCompile(`^&(\w+) *`)
	aliasUsed     = regexp.MustCompile(`^\*(\w+)`)
)

// null reports whether the value is null.
func (e *entry) null() bool {
	return slices.Contains([]string{"", "~", "null", "Null", "NULL"}, e.shown()) && !slices.ContainsFunc(e.body, isContent)
}

// shown returns the value on the key's line for people.
func (e *entry) shown() string {
	text, _ := e.plain()
	text, _, _ = strings.Cut(text, " #")
	return strings.TrimSpace(text)
}

func isContent(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && line[0] != '#'
}

// open returns the value if it is a mapping. An alias is a mapping with the key <<. A
// call of a function of CloudFormation, such as {Ref: X}, is not a mapping.
func (e *entry) open() (m mapping, ok bool) {
	text, _ := e.plain()
	switch first := slices.IndexFunc(e.body, isContent); {
	case strings.HasPrefix(text, "{"):
		m = parseFlow(strings.Join(append([]string{text}, e.body...), "\n"))
	case strings.HasPrefix(text, "*"):
		m.entries = []*entry{{key: "<<", value: text}}
	case text != "" || first < 0:
		return m, false
	default:
		_, _, pair := cutKey(strings.TrimSpace(e.body[first]))
		if !pair || strings.HasPrefix(strings.TrimSpace(e.body[first]), "-") {
			return m, false
		}
		m = parseMapping(e.body)
	}
	if len(m.entries) == 1 {
		name := m.entries[0].name()
		return m, name != "Ref" && !strings.HasPrefix(name, "Fn::")
	}
	return m, true
}

// set replaces the value by a block mapping. The anchor and the comment behind the key stay.
func (e *entry) set(m mapping) {
	if text, _ := e.plain(); text != "" {
		e.value = ""
	}
	e.body = m.lines("  ")
	if len(m.entries) == 0 {
		e.value, e.body = "{}", nil
	}
}

// copied returns a copy that can change without the original.
func (e *entry) copied() *entry {
	return &entry{slices.Clone(e.head), e.key, e.value, slices.Clone(e.body)}
}

// dedent removes the indentation that all lines share. Empty lines and comments may have less.
func dedent(lines []string) []string {
	shared := -1
	for _, line := range lines {
		if indent := len(line) - len(strings.TrimLeft(line, " ")); isContent(line) && (shared < 0 || indent < shared) {
			shared = indent
		}
	}
	cut := make([]string, len(lines))
	for i, line := range lines {
		line = strings.TrimRight(line, " \r")
		cut[i] = line[min(max(shared, 0), len(line)-len(strings.TrimLeft(line, " "))):]
	}
	return cut
}

// cutKey cuts "key: value" at its colon. In flow style, a quoted key needs no space. It
// returns false if there is no colon.
func cutKey(text string) (key, value string, ok bool) {
	var quote rune
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case i == 0 && (c == '"' || c == '\''):
			quote = c
		case c == ':' && (i+1 == len(text) || strings.ContainsAny(text[i+1:i+2], " \n") || strings.ContainsAny(text[:1], `"'`)):
			return strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:]), true
		}
	}
	return strings.TrimSpace(text), "", false
}

// parseFlow returns the entries of a mapping in braces. Its lines become one, without their
// comments.
func parseFlow(text string) (m mapping) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line[:end(line, " #", 0)])
	}
	text = strings.Join(lines, " ")
	for at := 1; at < len(text); {
		comma := end(text, ",}", at)
		if pair := strings.TrimSpace(text[at:comma]); pair != "" {
			key, value, _ := cutKey(pair)
			m.entries = append(m.entries, &entry{key: key, value: value})
		}
		if at = comma + 1; comma == len(text) || text[comma] == '}' {
			break
		}
	}
	return m
}

// end returns the offset of the comment after from, or of the first of the stops outside
// quotes and brackets. If there is neither, it returns the length of the text. A comment
// begins with " #".
func end(text, stops string, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		c, before := text[i], text[max(i-1, 0)]
		switch {
		case c == '"' || c == '\'' && strings.IndexByte(" ,[{:", before) >= 0:
			i = closing(text, i)
		case stops == " #":
			if c == '#' && (i == 0 || before == ' ') {
				return i
			}
		case depth == 0 && strings.IndexByte(stops, c) >= 0:
			return i
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return len(text)
}

// closing returns the offset of the quote that ends the one at an offset.
func closing(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[at] == '"':
			i++
		case text[i] == text[at]:
			return i
		}
	}
	return len(text)
}
