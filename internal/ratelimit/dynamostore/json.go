package dynamostore

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/aws/smithy-go"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// readBody returns the GetItem request of an item, in JSON.
func readBody(table string, k ratelimit.Key) []byte {
	b := appendKey(append(make([]byte, 0, 256), '{'), table, k)
	return append(b, `,"ConsistentRead":true}`...)
}

// appendKey appends the table and the key of a request.
func appendKey(b []byte, table string, k ratelimit.Key) []byte {
	b = appendText(append(b, `"TableName":`...), table)
	b = appendString(append(b, `,"Key":{"`+UserID+`":`...), k.UserID)
	b = appendString(append(b, `,"`+ActivityWindow+`":`...), sortKey(k))
	return append(b, '}')
}

// appendMember appends the name of a member of an object, after a comma unless it is
// the first member.
func appendMember(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	return append(appendText(b, name), ':')
}

// appendString appends a string attribute.
func appendString(b []byte, s string) []byte {
	return append(appendText(append(b, `{"S":`...), s), '}')
}

// appendText appends a JSON string. User ids, names of activities and names of
// attributes are ASCII, so it cannot fail.
func appendText[T string | []byte](b []byte, text T) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

// appendBinary appends bytes as DynamoDB writes them in JSON.
func appendBinary(b, value []byte) []byte {
	b = base64.StdEncoding.AppendEncode(append(b, '"'), value)
	return append(b, '"')
}

// readItem reads the item in the answer to a request, and reports whether there
// is one. An answer that is not DynamoDB's is a *smithy.DeserializationError: the
// request may have been applied.
func readItem(answer []byte) (item ratelimit.Item, found bool, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(answer), jsontext.AllowDuplicateNames(true)) // DynamoDB repeats no name
	err = members(d, func(name string) error {
		switch name {
		case "Attributes", "Item":
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

// members reads an object. It calls read for each member, which reads the
// member's value.
func members(d *jsontext.Decoder, read func(name string) error) error {
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return errors.Join(err, errNoObject)
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

var errNoObject = errors.New("want an object")
