package input_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/input"
)

// Decode refuses any bytes with a ValidationError, unless they are one JSON
// object with known names, each of them once. Then it reads the same values as
// encoding/json does.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `{"id": "u\u0031", "text": "\n", "count": 9223372036854775807, "flag": true, "list": ["a", ""]}`,
		`{"id": "u1", "id": "u2"}`, `{"ID": "u1"}`, "{\"text\": \"\xff\"}", `{"text": "\ud800"}`, `{"text": {"a": 1, "a": 2}}`,
		`{"count": 1e1}`, `{"count": -0}`, `{"list": [["a"]]}`, `{"id": "u1"} {"id": "u2"}`, `{"\u0069d": "u1"}`,
		`{"list": [` + strings.Repeat(`"a",`, 50) + `"a"]}`, `{"text": ` + strings.Repeat("[", 200),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		got, err := Decode(event, fields)
		if err != nil {
			if _, ok := errors.AsType[*ValidationError](err); !ok || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: the error is %q, want a ValidationError in UTF-8", event, err)
			}
			return
		}
		names, want, err := decodeAgain(event)
		if err != nil || !utf8.Valid(event) {
			t.Fatalf("%q is decoded, and is no JSON: %v", event, err)
		}
		slices.Sort(names)
		if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
			t.Fatalf("%q is decoded, and repeats a name: %q", event, names)
		}
		if !cmp.Equal(want, got) {
			t.Fatalf("Decode(%q) = %+v, want %+v", event, got, want)
		}
	})
}

// decodeAgain reads an event with encoding/json. It returns the names of the
// object in their order.
func decodeAgain(event []byte) (names []string, s sample, err error) {
	var count json.Number // 1e1 is no int64 for encoding/json
	members := map[string]any{"id": &s.ID, "text": &s.Text, "count": &count, "flag": &s.Flag, "list": &s.List}
	d := json.NewDecoder(bytes.NewReader(event))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, s, errors.Join(err, errors.New("it does not begin with an object"))
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return names, s, err
		}
		name, _ := token.(string)
		names = append(names, name)
		to, known := members[name]
		if !known {
			return names, s, errors.New("it has an unknown name: " + name)
		}
		if err := d.Decode(to); err != nil {
			return names, s, err
		}
	}
	if r, ok := new(big.Rat).SetString(count.String()); ok && r.IsInt() {
		s.Count = r.Num().Int64()
	}
	if len(s.List) == 0 {
		s.List = nil // Decode makes no difference between no list and an empty one
	}
	return names, s, nil
}
