package dynamostore

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/strictjson"
)

// own reports whether the store, and not a policy, uses an attribute.
func own(name string) bool {
	switch name {
	case UserID, ActivityWindow, ExpiresAt, activity, windowKey, createdAt:
		return true
	}
	return false
}

// parse reads an item. Without attributes it returns the zero Item, because the
// item does not exist. Item.Unread lists each attribute that should be a whole
// number or a set of ids, but is not. That matters only if a policy uses it.
func parse(attributes map[string]types.AttributeValue) ratelimit.Item {
	var b builder
	for name, value := range attributes {
		if own(name) {
			continue
		}
		ok := false
		switch v := value.(type) {
		case *types.AttributeValueMemberN:
			ok = b.addNumber(name, v.Value)
		case *types.AttributeValueMemberBS:
			ok = true
			for _, element := range v.Value {
				ok = b.addElement(element) && ok
			}
			ok = b.addIDs(name, ok)
		}
		if !ok {
			b.Unread = append(b.Unread, name)
		}
	}
	return b.sorted()
}

// readItem reads the item in the answer to a request, and reports whether there
// is one. An answer that is not DynamoDB's is a *smithy.DeserializationError: the
// request may have been applied.
func readItem(answer []byte) (item ratelimit.Item, found bool, err error) {
	r := reader{Decoder: strictjson.NewDecoder(bytes.NewBuffer(answer), strictjson.RepeatedNames)} // DynamoDB repeats no name
	err = r.members(func(name []byte) error {
		if string(name) == "Attributes" || string(name) == "Item" {
			found = true
			return r.members(r.readAttribute)
		}
		return r.SkipValue()
	})
	if err != nil {
		return ratelimit.Item{}, false, &smithy.DeserializationError{Err: fmt.Errorf("the answer to a request: %w", err)}
	}
	return r.sorted(), found, nil
}

// A reader reads the item in an answer.
type reader struct {
	*strictjson.Decoder
	builder

	text, element []byte // the last string and its base64, reused
}

// members reads an object. It calls read for each member, to read its value.
func (r *reader) members(read func(name []byte) error) error {
	if open, err := r.ReadToken(); err != nil || open.Kind() != '{' {
		return errors.Join(err, errors.New("want an object"))
	}
	for r.PeekKind() != '}' {
		if err := r.readText(); err != nil {
			return err
		}
		if err := read(r.text); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// readText reads a string into r.text.
func (r *reader) readText() error {
	quoted, err := r.ReadValue()
	if err == nil {
		r.text, err = strictjson.AppendUnquote(r.text[:0], quoted)
	}
	return err
}

// readAttribute reads an attribute in JSON, such as {"N":"3"}, as parse does.
func (r *reader) readAttribute(text []byte) error {
	if own(string(text)) {
		return r.SkipValue()
	}
	name, ok := ratelimit.AttributeName(text), false
	err := r.members(func(kind []byte) (err error) {
		switch {
		case string(kind) == "N" && r.PeekKind() == '"':
			err = r.readText()
			ok = err == nil && r.addNumber(name, string(r.text))
			return err
		case string(kind) == "BS" && r.PeekKind() == '[':
			ok, err = r.readSet()
			ok = r.addIDs(name, ok && err == nil)
			return err
		}
		return r.SkipValue()
	})
	if !ok {
		r.Unread = append(r.Unread, name)
	}
	return err
}

// readSet reads the elements of a set, and reports whether all of them are fit for one.
func (r *reader) readSet() (ok bool, err error) {
	if _, err := r.ReadToken(); err != nil {
		return false, err
	}
	ok = true
	for r.PeekKind() != ']' {
		if r.PeekKind() != '"' {
			ok = false
			if err := r.SkipValue(); err != nil {
				return false, err
			}
			continue
		}
		if err := r.readText(); err != nil {
			return false, err
		}
		r.element, err = base64.StdEncoding.AppendDecode(r.element[:0], r.text)
		ok = err == nil && r.addElement(r.element) && ok
	}
	_, err = r.ReadToken()
	return ok, err
}

// A builder collects the attributes of an item, in any order.
type builder struct {
	ratelimit.Item

	elements []ratelimit.Element // of the set that is next, reused
}

// sorted returns the item with the attributes in order.
func (b *builder) sorted() ratelimit.Item {
	b.State.Sort()
	slices.SortFunc(b.IDs, func(a, b ratelimit.IDSet) int { return strings.Compare(a.Name, b.Name) })
	return b.Item
}

// addNumber adds a number to the state, and reports whether it is a whole number.
func (b *builder) addNumber(name, text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ratelimit.IsSet(name) {
		return false
	}
	b.State = append(b.State, policy.Attr{Name: name, Value: n})
	return true
}

// addElement adds an element to the set that is next, and reports whether it is fit for one:
// an id, or an id followed by a note. AddElement leaves out the longer ids of an earlier
// version: no write looks for them.
func (b *builder) addElement(element []byte) bool {
	switch len(element) {
	case idSize:
		b.elements = append(b.elements, ratelimit.Element{ID: ratelimit.ID(element)})
	case idSize + noteSize:
		note := int64(binary.BigEndian.Uint64(element[idSize:]))
		b.elements = append(b.elements, ratelimit.Element{ID: ratelimit.ID(element[:idSize]), Note: note})
	case 8, 16: // an earlier version's
	default:
		return false
	}
	return true
}

// addIDs adds the set that is next to the item's ids if ok is set, and reports whether it is
// a set of ids.
func (b *builder) addIDs(name string, ok bool) bool {
	elements := slices.Clone(b.elements)
	if b.elements = b.elements[:0]; !ok || !ratelimit.IsSet(name) {
		return false
	}
	if len(elements) > 0 {
		b.IDs = append(b.IDs, ratelimit.IDSet{Name: name, Elements: elements})
	}
	return true
}

const idSize, noteSize = len(ratelimit.ID{}), 8
