package guard

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// An object is a JSON object in progress. Its members keep the order in which
// they are added, and no reflection is needed to write them.
type object struct{ b []byte }

// newObject begins an object. Most have 100 to 250 bytes.
func newObject() *object { return &object{append(make([]byte, 0, 256), '{')} }

// end returns the finished object.
func (o *object) end() []byte { return append(o.b, '}') }

func (o *object) name(name string) {
	if last := o.b[len(o.b)-1]; last != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) bool(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) int(name string, v int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

// string adds a string, which must be UTF-8. The decoder refused all others.
func (o *object) string(name, v string) {
	o.name(name)
	o.b, _ = jsontext.AppendQuote(o.b, v)
}

// raw adds a value that is already JSON.
func (o *object) raw(name string, v []byte) {
	o.name(name)
	o.b = append(o.b, v...)
}

// rawArray adds an array of values that are already JSON.
func (o *object) rawArray(name string, values ...[]byte) {
	o.name(name)
	o.b = append(append(append(o.b, '['), bytes.Join(values, []byte{','})...), ']')
}
