package scaffold

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
)

// message returns the text for refused users of a new guard.
func (s *source) message() string {
	return cmp.Or(s.texts["tooMany"], "Rate limit exceeded: Too many requests. Please try again later.")
}

// An insertion is a text to put before an offset.
type insertion struct {
	at   int
	text string
}

// withGuard returns the text of the file with one more guard.
func (s *source) withGuard(variable string, g limits.Guard) (string, error) {
	all := s.values["All"]
	if len(all.Elts) == 0 {
		return "", s.unknown(all)
	}
	lastName := all.Elts[len(all.Elts)-1].(*ast.Ident).Name // parse has checked it
	last := s.values[lastName]
	if !s.blocks[lastName].Lparen.IsValid() {
		return "", s.unknown(last)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s = limits.Guard{\nName: %q,\nMessage: %s,\nActivities: []limits.Activity{\n", variable, g.Name, s.name(g.Message))
	for _, a := range g.Activities {
		b.WriteString(line(a) + ",\n")
	}
	b.WriteString("},\n}")
	return s.insert(
		insertion{s.endOfLine(last.End()), b.String()},
		insertion{s.offset(all.Elts[len(all.Elts)-1].End()), ", " + variable},
	)
}

// withActivity returns the text of the file with one more activity of a guard.
func (s *source) withActivity(guard string, a limits.Activity) (string, error) {
	var list *ast.CompositeLit
	err := s.fields(s.values[s.byGuard[guard]], func(name string, value ast.Expr) error {
		if name == "Activities" {
			list, _ = value.(*ast.CompositeLit)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if list == nil || len(list.Elts) == 0 {
		return "", s.unknown(s.values[s.byGuard[guard]])
	}
	end := list.Elts[len(list.Elts)-1].End()
	if at := s.endOfLine(end); at < s.offset(list.Rbrace) {
		return s.insert(insertion{at, "\n" + line(a) + ","})
	}
	return s.insert(insertion{s.offset(end), ", " + line(a)})
}

// line returns an activity as limits.go writes it.
func line(a limits.Activity) string {
	text := fmt.Sprintf("{Name: %q, Limit: policy.Must(%q)", a.Name, a.Limit.String())
	if len(a.Tiers) > 0 {
		text += ", Tiers: limits.Tiers{" + pairs(a.Tiers, "policy.Must(%q)") + "}"
	}
	return text + "}"
}

// pairs returns the tiers as pairs of a map, each limit in a format.
func pairs(tiers limits.Tiers, verb string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tiers)) {
		all = append(all, strconv.Quote(name)+": "+fmt.Sprintf(verb, tiers[name].String()))
	}
	return strings.Join(all, ", ")
}

// name returns the constant that holds a text, or the quoted text.
func (s *source) name(text string) string {
	for _, name := range slices.Sorted(maps.Keys(s.texts)) {
		if s.texts[name] == text {
			return name
		}
	}
	return strconv.Quote(text)
}

// insert returns the text with insertions, in the form of gofmt.
func (s *source) insert(all ...insertion) (string, error) {
	slices.SortFunc(all, func(a, b insertion) int { return b.at - a.at })
	text := s.text
	for _, i := range all {
		text = text[:i.at] + i.text + text[i.at:]
	}
	formatted, err := format.Source([]byte(text))
	return string(formatted), err
}

func (s *source) offset(p token.Pos) int { return s.files.Position(p).Offset }

// endOfLine returns the offset of the line break after a position.
func (s *source) endOfLine(p token.Pos) int {
	from := s.offset(p)
	if n := strings.IndexByte(s.text[from:], '\n'); n >= 0 {
		return from + n
	}
	return len(s.text)
}
