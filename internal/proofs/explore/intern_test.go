package explore

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A set numbers values in the order in which they come, so that states are small and two equal
// values have one number. In those of newSet and newTable, number 0 is the zero value.
type set[T comparable] struct {
	numbers map[T]uint32
	values  []T
}

func newSet[T comparable]() *set[T] {
	var zero T
	return &set[T]{map[T]uint32{zero: 0}, []T{zero}}
}

func (t *set[T]) number(v T) uint32 {
	if n, ok := t.numbers[v]; ok {
		return n
	}
	n := uint32(len(t.values))
	t.numbers[v] = n
	t.values = append(t.values, v)
	return n
}

func (t *set[T]) at(n uint32) T { return t.values[n] }

// A table is a set of values that Go can't compare.
type table[T any] struct {
	numbers map[string]uint32
	values  []T
	scratch []byte
}

func newTable[T any]() *table[T] {
	t := &table[T]{numbers: map[string]uint32{}}
	var zero T
	t.number(zero)
	return t
}

func (t *table[T]) number(v T) uint32 {
	t.scratch = encode(t.scratch[:0], reflect.ValueOf(&v).Elem())
	if n, ok := t.numbers[string(t.scratch)]; ok {
		return n
	}
	n := uint32(len(t.values))
	t.numbers[string(t.scratch)] = n
	t.values = append(t.values, v)
	return n
}

func (t *table[T]) at(n uint32) T { return t.values[n] }

// encode writes a value so that equal values have equal bytes. A system has each policy
// once, so the place of its limits tells it from others. The zone of a time does not matter.
func encode(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Int, reflect.Int8, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Array, reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for i := range v.Len() {
			b = encode(b, v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[policy.Policy]() {
			return binary.AppendUvarint(b, uint64(v.FieldByName("limits").Pointer()))
		}
		fields := v.NumField() // v.Fields would describe each one, which takes most of the time
		for i := range fields {
			b = encode(b, v.Field(i))
		}
	case reflect.Map:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			b = encode(encode(b, k), v.MapIndex(k))
		}
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*time.Location]() {
			panic(fmt.Sprintf("a state holds the pointer %v", v.Type()))
		}
	default:
		panic(fmt.Sprintf("a state holds the type %v", v.Type()))
	}
	return b
}
