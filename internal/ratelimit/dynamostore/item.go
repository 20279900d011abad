package dynamostore

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

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
func parse(attributes map[string]types.AttributeValue) (item ratelimit.Item) {
	for name, value := range attributes {
		if own(name) {
			continue
		}
		ok := false
		switch v := value.(type) {
		case *types.AttributeValueMemberN:
			ok = addNumber(&item, name, v.Value)
		case *types.AttributeValueMemberBS:
			ok = addIDs(&item, name, v.Value)
		}
		if !ok {
			item.Unread = append(item.Unread, name)
		}
	}
	return item
}

// readItem reads the item in the answer to a request, and reports whether there
// is one. An answer that is not DynamoDB's is a *smithy.DeserializationError: the
// request may have been applied.
func readItem(answer []byte) (item ratelimit.Item, found bool, err error) {
	d := strictjson.NewDecoder(bytes.NewBuffer(answer), strictjson.RepeatedNames) // DynamoDB repeats no name
	err = members(d, func(name string) error {
		if name == "Attributes" || name == "Item" {
			found = true
			return members(d, func(name string) error { return readAttribute(d, &item, name) })
		}
		return d.SkipValue()
	})
	if err != nil {
		return ratelimit.Item{}, false, &smithy.DeserializationError{Err: fmt.Errorf("the answer to a request: %w", err)}
	}
	return item, found, nil
}

// members reads an object. It calls read for each member, to read its value.
func members(d *strictjson.Decoder, read func(name string) error) error {
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return errors.Join(err, errors.New("want an object"))
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// readAttribute reads an attribute in JSON, such as {"N":"3"}, as parse does.
func readAttribute(d *strictjson.Decoder, item *ratelimit.Item, name string) error {
	if own(name) {
		return d.SkipValue()
	}
	ok := false
	err := members(d, func(kind string) error {
		switch {
		case kind == "N" && d.PeekKind() == '"':
			text, err := d.ReadToken()
			ok = err == nil && addNumber(item, name, text.String())
			return err
		case kind == "BS" && d.PeekKind() == '[':
			set, read, err := readSet(d)
			ok = err == nil && read && addIDs(item, name, set)
			return err
		}
		return d.SkipValue()
	})
	if !ok {
		item.Unread = append(item.Unread, name)
	}
	return err
}

// readSet reads an array of strings, and reports whether all of them are base64.
func readSet(d *strictjson.Decoder) (set [][]byte, ok bool, err error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, false, err
	}
	ok = true
	for d.PeekKind() != ']' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, false, err
		}
		element, err := base64.StdEncoding.DecodeString(token.String())
		ok = ok && err == nil
		set = append(set, element)
	}
	_, err = d.ReadToken()
	return set, ok, err
}

// addNumber adds a number to the state, and reports whether it is a whole number.
func addNumber(item *ratelimit.Item, name, text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ratelimit.IsSet(name) {
		return false
	}
	if item.State == nil {
		item.State = make(policy.State)
	}
	item.State[name] = n
	return true
}

// addIDs adds a set to the item's ids, and reports whether it is a set of ids. Each
// element is an id, or an id followed by a note. AddIDs leaves out the longer ids
// of an earlier version: no write looks for them.
func addIDs(item *ratelimit.Item, name string, set [][]byte) bool {
	if !ratelimit.IsSet(name) {
		return false
	}
	marks := make([]ratelimit.Element, 0, len(set))
	for _, element := range set {
		switch len(element) {
		case idSize:
			marks = append(marks, ratelimit.Element{ID: ratelimit.ID(element)})
		case idSize + noteSize:
			note := int64(binary.BigEndian.Uint64(element[idSize:]))
			marks = append(marks, ratelimit.Element{ID: ratelimit.ID(element[:idSize]), Note: note})
		case 8, 16: // an earlier version's
		default:
			return false
		}
	}
	if item.IDs == nil {
		item.IDs = make(ratelimit.IDs, 2)
	}
	item.IDs[name] = marks
	return true
}

const idSize, noteSize = len(ratelimit.ID{}), 8
