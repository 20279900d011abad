package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/parser"

	"github.com/cric-talk/guards/internal/limits"
)

// extraFile is a file of the project that changes the generated parts of template.yaml.
// A project need not have it.
const extraFile = "template.extra.yaml"

// required is the key that an entry of its own must have. An entry without it changes a
// generated one.
var required = map[string]string{"Resources": "Type", "Parameters": "Type", "Outputs": "Value"}

// A merger merges an extra file into the generated parts of the template.
type merger struct {
	parts    map[string]*mapping // by the section of the template, such as Resources
	changing *entry              // the entry of a part, such as one resource, that is being changed
	did      []string            // what the merge changed, such as: adds Globals.Function.Tracing
}

// withExtra returns the generated parts of the template, changed by the project's extra
// file, and what that changed. Without such a file, it returns no parts.
func withExtra(folder fs.FS, guards limits.Guards, inGo bool) (parts map[string]string, did []string, err error) {
	file, err := fs.ReadFile(folder, extraFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	extra, err := parseExtra(string(file))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", extraFile, err)
	}
	x := merger{parts: map[string]*mapping{}}
	for _, part := range documents[0].parts {
		m := parseMapping(strings.Split(strings.TrimSuffix(text(part, guards, inGo), "\n"), "\n"))
		x.parts[section(part)] = &m
	}
	if err := x.mergeAll(extra); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", extraFile, err)
	}
	parts = map[string]string{}
	for _, part := range documents[0].parts {
		parts[part] = strings.Join(x.parts[section(part)].lines("  "), "\n") + "\n"
	}
	return parts, x.did, nil
}

// section returns the key of the template whose generated part has this name.
func section(part string) string { return strings.ToUpper(part[:1]) + part[1:] }

// parseExtra reads an extra file.
func parseExtra(text string) (m mapping, err error) {
	// In braces, the parser takes !Ref AWS::Region for a mapping.
	f, err := parser.ParseBytes([]byte(regexp.MustCompile(`!Ref (AWS::\w+)`).ReplaceAllString(text, `!Ref "$1"`)), 0)
	if err != nil {
		return m, err
	}
	if len(f.Docs) > 1 {
		return m, errors.New("has several documents, want one")
	}
	e := entry{body: strings.Split(strings.TrimPrefix(strings.TrimSpace(text), "---"), "\n")}
	if !slices.ContainsFunc(e.body, isContent) {
		return m, nil
	}
	if i := slices.IndexFunc(e.body, isContent); strings.HasPrefix(strings.TrimSpace(e.body[i]), "{") {
		e.value, e.body = strings.TrimSpace(e.body[i]), e.body[i+1:]
	}
	m, ok := e.open()
	if !ok {
		return m, errors.New("has no keys such as Globals or Resources")
	}
	return m, nil
}

// mergeAll merges an extra file.
func (x *merger) mergeAll(extra mapping) error {
	for _, e := range extra.entries {
		part := x.parts[e.name()]
		if part == nil {
			return fmt.Errorf("%s is no generated part of template.yaml: write it there, outside the generated lines", e.name())
		}
		m, ok := e.open()
		if !ok {
			return fmt.Errorf("%s has no keys below it", e.name())
		}
		key := required[e.name()] // of an entry of its own
		for _, own := range m.entries {
			inner, ok := own.open()
			if key != "" && ok && part.find(own.name()) == nil && inner.find(key) == nil {
				return fmt.Errorf("%s.%s is not generated (any more): delete it, or give it a %s to add one of your own", e.name(), own.name(), key)
			}
		}
		if err := x.merge(part, m, e.name()); err != nil {
			return err
		}
	}
	return nil
}

// merge merges extra into base. At is the path of both.
func (x *merger) merge(base *mapping, extra mapping, at string) error {
	for _, e := range extra.entries {
		path := at + "." + e.name()
		own := base.find(e.name())
		if own == nil {
			own = x.inherited(base, e)
		}
		if !strings.Contains(at, ".") {
			x.changing = own
		}
		m, isMap := e.open()
		switch {
		case e.null() && own == nil:
			return fmt.Errorf("%s is null, but it is not generated (any more), so there is nothing to remove", path)
		case e.null():
			x.note("removes " + path)
			base.remove(own)
			x.gone(own)
		case own == nil:
			x.note("adds " + path)
			base.entries = append(base.entries, e.copied())
		case isMap:
			if old, ok := own.open(); ok {
				if err := x.merge(&old, m, path); err != nil {
					return err
				}
				own.set(old)
				continue
			}
			fallthrough
		default:
			x.replace(own, e, path)
		}
	}
	return nil
}

// replace gives an entry another value.
func (x *merger) replace(own, e *entry, path string) {
	before, after := own.copied(), e.copied()
	own.value, own.body = after.value, after.body
	if before.value == own.value && slices.Equal(before.body, own.body) {
		return
	}
	x.gone(before)
	if before.body == nil && own.body == nil {
		path += " from " + before.shown() + " to " + own.shown()
	}
	x.note("changes " + path)
}

func (x *merger) note(did string) { x.did = append(x.did, did) }

// inherited returns what base has from another mapping by the key <<, now as an entry of
// its own, or nil. Entries of its own win, so base keeps its key <<, unless e removes one.
func (x *merger) inherited(base *mapping, e *entry) *entry {
	from := base.find("<<")
	if from == nil {
		return nil
	}
	shared, _ := from.open()
	if alias := aliasUsed.FindStringSubmatch(from.value); alias != nil {
		shared, _ = x.defines(alias[1])
	}
	if shared.find(e.name()) == nil {
		return nil
	}
	if !e.null() {
		base.entries = append(base.entries, shared.find(e.name()).copied())
		return base.find(e.name())
	}
	base.remove(from)
	for _, s := range shared.entries {
		if base.find(s.name()) == nil {
			base.entries = append(base.entries, s.copied())
		}
	}
	x.gone(from)
	return base.find(e.name())
}

// defines returns the mapping with this anchor.
func (x *merger) defines(anchor string) (found mapping, ok bool) {
	var look func(m mapping)
	look = func(m mapping) {
		for _, e := range m.entries {
			inner, isMap := e.open()
			if _, name := e.plain(); name == anchor && isMap {
				found, ok = inner, true
			}
			if isMap && strings.Contains(strings.Join(e.body, "\n"), "&"+anchor) {
				look(inner)
			}
		}
	}
	for _, part := range x.parts {
		look(*part)
	}
	return found, ok
}

// gone gives the anchors in a removed entry to the first entry that refers to each.
func (x *merger) gone(removed *entry) {
	m, isMap := removed.open()
	if _, name := removed.plain(); name != "" && isMap {
		for _, part := range documents[0].parts {
			if x.redefine(x.parts[section(part)], name, m) {
				break
			}
		}
	}
	if !isMap || strings.HasPrefix(removed.value, "*") {
		return
	}
	for _, e := range m.entries {
		x.gone(e)
	}
}

// redefine replaces the first alias *name by the mapping itself, with its anchor.
func (x *merger) redefine(m *mapping, name string, shared mapping) bool {
	for _, e := range m.entries {
		if e == x.changing {
			continue
		}
		if alias := aliasUsed.FindStringSubmatch(e.value); alias != nil && alias[1] == name {
			e.set(shared)
			e.value = "&" + name
			return true
		}
		inner, ok := e.open()
		if ok && !strings.HasPrefix(e.value, "*") && x.redefine(&inner, name, shared) {
			e.set(inner)
			return true
		}
	}
	return false
}
