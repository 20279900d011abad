package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cric-talk/guards/internal/strictjson"
)

// Damaged are entries that can't be read, for example after an edit by hand, as they stand in
// a document or beside it. They change nothing and block nobody, the others apply, and an edit
// leaves them as they are.
type Damaged struct {
	Activities map[string]strictjson.Value // by name, see [Settings]
	Grants     []strictjson.Value
	Ends       map[string]strictjson.Value // by name, see [Ends]
	Blocks     []strictjson.Value

	// Problems tells what is wrong with each, and with a text beside the document if
	// nothing of it can be read. It can contain user ids, so it is not for a log.
	Problems []string
}

// add adds a problem.
func (d *Damaged) add(where string, err error) {
	d.Problems = append(d.Problems, where+": "+strictjson.Problem(err))
}

// Parse reads a document that the code may be unable to apply. It leaves entries that can't
// be read in Damaged. Its error has the type *DocumentError: the document itself is damaged,
// and the settings come from its entries that can still be found.
func Parse(document []byte) (s Settings, err error) {
	e := entries{named: map[string]strictjson.Value{}}
	if err = e.find(document, map[string]strictjson.Kind{"activities": '{', "grants": '['}); err != nil {
		err = &DocumentError{err}
	}
	s.Activities, s.Damaged.Activities = readEach[Override](&s.Damaged, "", e.named, strictjson.KnownMembers)
	for i, entry := range e.listed {
		var g Grant
		if err := strictjson.Unmarshal(entry, &g, strictjson.KnownMembers); err != nil {
			s.Damaged.add(fmt.Sprint("grant ", i+1), err)
			s.Damaged.Grants = append(s.Damaged.Grants, entry)
			continue
		}
		s.Grants = append(s.Grants, g)
	}
	return s, err
}

// readEach reads the values of an object, each by itself. Damaged has the values that can't be
// read, as they are.
func readEach[V any](d *Damaged, what string, values map[string]strictjson.Value, options ...strictjson.Option) (all map[string]V, damaged map[string]strictjson.Value) {
	all, damaged = map[string]V{}, map[string]strictjson.Value{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var v V
		if err := strictjson.Unmarshal(values[name], &v, options...); err != nil {
			d.add(what+name, err)
			damaged[name] = values[name]
			continue
		}
		all[name] = v
	}
	return all, damaged
}

// lenient reads and writes an entry as it stands, also with a name that it has twice or with
// half a character. Who reads the entry itself is strict.
var lenient = []strictjson.Option{strictjson.RepeatedNames, strictjson.AnyBytes, strictjson.AsWritten}

// entries are found in a document first. Then each is read by itself, so that a damaged one
// leaves the others in force.
type entries struct {
	named  map[string]strictjson.Value // in an object
	listed []strictjson.Value          // in an array
	twice  error                       // a name that an object of the document, not of an entry, has twice
}

// find finds the entries in these members of a document: an object or an array, by the kind
// of its first token. After an error, e has the entries that can still be found.
func (e *entries) find(document []byte, members map[string]strictjson.Kind) error {
	d := strictjson.NewDecoder(bytes.NewReader(document), lenient...)
	err := e.each(d, '{', func(member string) error {
		kind, ok := members[member]
		if !ok {
			return fmt.Errorf("the document has the unknown member %q", member)
		}
		return e.each(d, kind, func(name string) error {
			v, err := d.ReadValue()
			switch {
			case err != nil:
				return err
			case kind == '{':
				e.named[name] = v.Clone()
			default:
				e.listed = append(e.listed, v.Clone())
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return e.twice
}

// each reads an object or an array, and calls element before each value. An element of an
// array has no name.
func (e *entries) each(d *strictjson.Decoder, kind strictjson.Kind, element func(name string) error) error {
	where := string(d.StackPointer())
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != kind {
		return fmt.Errorf("%s is a %s", where, t.Kind())
	}
	seen := map[string]bool{}
	for d.PeekKind() != kind+2 { // ASCII has ] and } two after [ and {
		name := ""
		if kind == '{' {
			t, err := d.ReadToken()
			if err != nil {
				return err
			}
			name = t.String()
			if seen[name] && e.twice == nil {
				e.twice = fmt.Errorf("%w %q", strictjson.ErrDuplicateName, name)
			}
			seen[name] = true
		}
		if err := element(name); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// Document returns the settings as JSON, in their stored form.
func (s Settings) Document() ([]byte, error) {
	return marshal(struct {
		Activities map[string]any `json:"activities,omitempty"`
		Grants     []any          `json:"grants,omitempty"`
	}{object(s.Activities, s.Damaged.Activities), array(s.Grants, s.Damaged.Grants)})
}

// object returns the values of an object, with the damaged ones as they are. If a name has
// both, an edit has set the other one.
func object[V any](values map[string]V, damaged map[string]strictjson.Value) map[string]any {
	all := map[string]any{}
	for name, v := range damaged {
		all[name] = v
	}
	for name, v := range values {
		all[name] = v
	}
	return all
}

// array does the same for an array.
func array[V any](values []V, damaged []strictjson.Value) (all []any) {
	for _, v := range values {
		all = append(all, v)
	}
	for _, v := range damaged {
		all = append(all, v)
	}
	return all
}

// readBeside returns the values that writeBeside has written; nil: none. If the text can't be
// read, there are none, because it must not keep the live limits from being followed.
func readBeside[V any](d *Damaged, what string, text []byte, options ...strictjson.Option) (values map[string]V) {
	if len(text) == 0 {
		return nil
	}
	if err := strictjson.Unmarshal(text, &values, options...); err != nil {
		d.add(what, err)
		return nil
	}
	return values
}

// writeBeside returns the JSON of what stands beside the document; nil: nothing.
func writeBeside[V any](values map[string]V, damaged map[string]strictjson.Value) ([]byte, error) {
	all := object(values, damaged)
	if len(all) == 0 {
		return nil, nil
	}
	return marshal(all)
}

// marshal returns the JSON of entries, with the damaged ones as they stand.
func marshal(v any) ([]byte, error) {
	return strictjson.Marshal(v, append(lenient, strictjson.Sorted)...)
}
