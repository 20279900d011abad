package guards_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/cric-talk/guards"
)

// An event has a number, or numbers by names. A plan of 0 is a number, and none is another thing.
func TestNumbersAsJSON(t *testing.T) {
	for _, tt := range []struct {
		numbers guards.Numbers
		want    string
	}{
		{nil, `{"userId":"u1","activity":"post"}`},
		{guards.Numbers{}, `{"userId":"u1","activity":"post"}`},
		{guards.Number(0), `{"userId":"u1","activity":"post","limit":0}`},
		{guards.Number(500), `{"userId":"u1","activity":"post","limit":500}`},
		{guards.Numbers{"tenant": 50_000, "call_api": 0}, `{"userId":"u1","activity":"post","limit":{"call_api":0,"tenant":50000}}`},
		{guards.Numbers{"": 1, "tenant": 2}, `{"userId":"u1","activity":"post","limit":{"":1,"tenant":2}}`}, // a guard refuses it
	} {
		event, err := json.Marshal(guards.Request{UserID: "u1", Activity: "post", Limit: tt.numbers})
		if err != nil || string(event) != tt.want {
			t.Errorf("%v is %s, %v, want %s", tt.numbers, event, err, tt.want)
		}
		again := guards.Request{Limit: guards.Number(7)}
		if len(tt.numbers) == 0 {
			again.Limit, tt.numbers = nil, nil
		}
		if err := json.Unmarshal(event, &again); err != nil || !reflect.DeepEqual(again.Limit, tt.numbers) {
			t.Errorf("%s is read as %v, %v", event, again.Limit, err)
		}
	}
}

// What is no number is never read as the number 0, which allows nothing.
func TestWrongNumbersAsJSON(t *testing.T) {
	for _, text := range []string{`"500"`, `1.5`, `[500]`, `true`, `{"tenant":"500"}`, `{"tenant":1.5}`, `{"tenant":null}`} {
		var got guards.Numbers
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %v", text, got)
		}
	}
	got := guards.Number(7)
	if err := json.Unmarshal([]byte(`null`), &got); err != nil || got != nil {
		t.Errorf("null is read as %v, %v, want none", got, err)
	}
}
