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

// The members of the document. Each entry in them is read by itself, so that a damaged one
// leaves the others in force.
const (
	activities = "activities" // an object: overrides by name
	grants     = "grants"     // an array
)

// Damaged are entries that can't be read, as they stand in the document and beside it.
type Damaged struct {
	Activities map[string]strictjson.Value // by name, see [Settings]
	Grants     []strictjson.Value
	Ends       map[string]strictjson.Value // by name, see [Ends]

	// Problems tells what is wrong with each, and with a text beside the document if
	// nothing of it can be read. It can contain user ids, so it is not for a log.
	Problems []string
}

// Len returns how many things are damaged.
func (d Damaged) Len() int { return len(d.Problems) }

// add adds a problem.
func (d *Damaged) add(where string, err error) {
	d.Problems = append(d.Problems, where+": "+strictjson.Problem(err))
}

// Parse reads a document that the code may be unable to apply. It leaves entries that can't
// be read in Damaged. Its error has the type *DocumentError: the document itself is damaged,
// and the settings come from its entries that can still be found.
func Parse(document []byte) (s Settings, err error) {
	var e entries
	if err = e.read(document); err != nil {
		err = &DocumentError{err}
	}
	for _, name := range slices.Sorted(maps.Keys(e.activities)) {
		var o Override
		if err := strictjson.Unmarshal(e.activities[name], &o, strictjson.KnownMembers); err != nil {
			s.Damaged.add(name, err)
			s.Damaged.Activities = set(s.Damaged.Activities, name, e.activities[name])
			continue
		}
		s.Activities = set(s.Activities, name, o)
	}
	for i, entry := range e.grants {
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

// The entries of a document, before they are read.
type entries struct {
	activities map[string]strictjson.Value
	grants     []strictjson.Value
	blocks     []strictjson.Value // of the document of blocks
	twice      error              // a name that an object of the document, not of an entry, has twice
}

// lenient reads and writes an entry as it stands, also with a name that it has twice or with
// half a character. Who reads the entry itself is strict.
var lenient = []strictjson.Option{strictjson.RepeatedNames, strictjson.AnyBytes, strictjson.AsWritten}

// read finds the entries of a document. After an error, e has those that can still be found.
func (e *entries) read(document []byte) error {
	d := strictjson.NewDecoder(bytes.NewReader(document), lenient...)
	err := e.object(d, func(member string) error {
		switch member {
		case activities:
			return e.object(d, func(name string) error {
				v, err := d.ReadValue()
				if err == nil {
					e.activities = set(e.activities, name, v.Clone())
				}
				return err
			})
		case grants:
			return array(d, &e.grants)
		}
		return fmt.Errorf("the document has the unknown member %q", member)
	})
	return e.end(d, err)
}

// end returns what is wrong with a document when d is at its end.
func (e *entries) end(d *strictjson.Decoder, err error) error {
	if err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return e.twice
}

// object reads an object, and calls member after each name.
func (e *entries) object(d *strictjson.Decoder, member func(name string) error) error {
	seen := map[string]bool{}
	return list(d, '{', '}', func() error {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := t.String()
		if seen[name] && e.twice == nil {
			e.twice = fmt.Errorf("%w %q", strictjson.ErrDuplicateName, name)
		}
		seen[name] = true
		return member(name)
	})
}

// array reads the elements of an array.
func array(d *strictjson.Decoder, all *[]strictjson.Value) error {
	return list(d, '[', ']', func() error {
		v, err := d.ReadValue()
		if err == nil {
			*all = append(*all, v.Clone())
		}
		return err
	})
}

// list reads what is between two tokens.
func list(d *strictjson.Decoder, begin, end strictjson.Kind, element func() error) error {
	where := string(d.StackPointer())
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != begin {
		return fmt.Errorf("%s is a %s", where, t.Kind())
	}
	for d.PeekKind() != end {
		if err := element(); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// set sets a value in a map that may be nil.
func set[V any](m map[string]V, name string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = v
	return m
}

// Document returns the settings as JSON, in their stored form.
func (s Settings) Document() ([]byte, error) {
	members, overrides := map[string]any{}, map[string]any{}
	for name, o := range s.Activities {
		overrides[name] = o
	}
	for name, entry := range s.Damaged.Activities {
		overrides[name] = entry
	}
	var granted []any
	for _, g := range s.Grants {
		granted = append(granted, g)
	}
	for _, entry := range s.Damaged.Grants {
		granted = append(granted, entry)
	}
	if len(overrides) > 0 {
		members[activities] = overrides
	}
	if len(granted) > 0 {
		members[grants] = granted
	}
	return strictjson.Marshal(members, append(lenient, strictjson.Sorted)...)
}
