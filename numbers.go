package guards

import (
	"encoding/json"
	"fmt"
)

// Numbers are numbers that an app gives for limits at run time, such as what a customer has
// bought. Each is 0 to 1,000,000, in the units of the limit's text, which has a max. The keys are
// the names in the answer's Limits:
//
//	guards.Numbers{"tenant": 50_000, "call_api": 500}
//
// [Number] makes the number of the user's only limit, whose name is empty. The zero value gives no
// number, so the text decides. As JSON, Numbers with only an empty name are a number, and others
// are an object.
type Numbers map[string]int64

// Number returns the number of the user's only limit. 0 allows nothing.
func Number(n int64) Numbers { return Numbers{"": n} }

// MarshalJSON implements [json.Marshaler].
func (n Numbers) MarshalJSON() ([]byte, error) {
	if one, ok := n[""]; ok && len(n) == 1 {
		return json.Marshal(one)
	}
	return json.Marshal(map[string]int64(n))
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads null as no number.
func (n *Numbers) UnmarshalJSON(text []byte) error {
	var one *int64
	if err := json.Unmarshal(text, &one); err == nil && one != nil {
		*n = Number(*one)
		return nil
	}
	var several map[string]*int64
	if err := json.Unmarshal(text, &several); err != nil {
		return err
	}
	*n = nil
	for name, one := range several {
		if one == nil {
			return fmt.Errorf("the number of %q is null", name)
		}
		if *n == nil {
			*n = Numbers{}
		}
		(*n)[name] = *one
	}
	return nil
}
