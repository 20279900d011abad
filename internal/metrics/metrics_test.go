package metrics_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/metrics"
)

var now = time.UnixMilli(1_700_000_000_123)

func ExampleWriter_Write() {
	w := Writer{W: os.Stdout, Namespace: "Guards"}
	w.Write(now, []Dimension{{"Guard", "posts-guard"}}, []Value{{"Refused", 1}})
	// Output:
	// {"_aws":{"Timestamp":1700000000123,"CloudWatchMetrics":[{"Namespace":"Guards","Dimensions":[["Guard"]],"Metrics":[{"Name":"Refused","Unit":"Count"}]}]},"Guard":"posts-guard","Refused":1}
}

// calls collects what each call of Write hands over.
type calls []string

func (c *calls) Write(line []byte) (int, error) {
	*c = append(*c, string(line))
	return 0, errors.New("full")
}

func TestEachLineIsOneWriteOfValidJSON(t *testing.T) {
	var got calls
	w := Writer{W: &got, Namespace: "a\"\n\xff"}
	w.Write(now, nil, []Value{{"Scanned", 9}, {"Deleted", 0}})
	w.Write(now, []Dimension{{"Guard", "g\n"}, {"Activity", ""}}, []Value{{"Requests", -1 << 63}})
	w.Write(now, []Dimension{{"Guard", "g"}}, nil)
	if len(got) != 2 {
		t.Fatalf("%d writes, want one for each line that has values", len(got))
	}
	for i, wants := range [][]string{
		{`"Dimensions":[[]]`, `{"Name":"Scanned","Unit":"Count"},{"Name":"Deleted","Unit":"Count"}`, `"Scanned":9,"Deleted":0}`},
		{`"Dimensions":[["Guard","Activity"]]`, `"Guard":"g\n","Activity":"","Requests":-9223372036854775808}`},
	} {
		if !json.Valid([]byte(got[i])) || strings.Count(got[i], "\n") != 1 || !strings.HasSuffix(got[i], "}\n") {
			t.Errorf("%q is not one line of JSON", got[i])
		}
		for _, want := range wants {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s\ndoes not contain %s", got[i], want)
			}
		}
	}
}

func TestTheZeroWriterWritesNothing(*testing.T) {
	Writer{}.Write(now, nil, []Value{{"Scanned", 9}})
}
