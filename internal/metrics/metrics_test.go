package metrics_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

// lines returns what was written, as "time: name=count ...", and clears it.
func lines(t *testing.T, text *strings.Builder) (list []string) {
	t.Helper()
	for l := range strings.Lines(text.String()) {
		var line struct {
			Activity         string
			Allowed, Refused int64
			AWS              struct{ Timestamp int64 } `json:"_aws"`
		}
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%d: %s allowed=%d refused=%d", line.AWS.Timestamp, line.Activity, line.Allowed, line.Refused))
	}
	text.Reset()
	return list
}

func TestBatch(t *testing.T) {
	var text strings.Builder
	b := &Batch{Writer: Writer{W: &text, Namespace: "Guards"}}
	for _, step := range []struct {
		at             int64 // milliseconds; negative: flush
		activity, name string
		now            bool // flush after it
		want           []string
	}{
		{at: 10_000, activity: "pin", name: "Allowed", want: []string{"10000: pin allowed=1 refused=0"}}, // nothing was written before
		{at: 10_400, activity: "pin", name: "Allowed"},
		{at: 10_800, activity: "pin", name: "Refused"},
		{at: 10_900, activity: "like", name: "Allowed"},
		{at: 11_200, activity: "pin", name: "Allowed", want: []string{"10400: pin allowed=2 refused=1", "10400: like allowed=1 refused=0"}},
		{at: 11_600, activity: "pin", name: "Allowed"},
		{at: 11_700, activity: "pin", name: "Refused", now: true, want: []string{"11600: pin allowed=1 refused=1"}},
		{at: 11_800, activity: "pin", name: "Allowed"},
		// exactly a second after the last line
		{at: 12_200, activity: "pin", name: "Refused", want: []string{"11800: pin allowed=1 refused=1"}},
		{at: 12_800, activity: "pin", name: "Allowed"},
		// frozen for ten minutes
		{at: 611_800, activity: "pin", name: "Allowed", want: []string{"12800: pin allowed=1 refused=0", "611800: pin allowed=1 refused=0"}},
		{at: 612_000, activity: "pin", name: "Allowed"},
		// the clock steps back
		{at: 600_000, activity: "pin", name: "Allowed", want: []string{"612000: pin allowed=1 refused=0", "600000: pin allowed=1 refused=0"}},
		{at: 600_100, activity: "pin", name: "Refused"},
		{at: -1, want: []string{"600100: pin allowed=0 refused=1"}},
		{at: -1},
	} {
		if step.at < 0 {
			b.Flush()
		} else {
			b.Add(time.UnixMilli(step.at), []Dimension{{"Activity", step.activity}}, []Value{{step.name, 1}})
		}
		if step.now {
			b.Flush()
		}
		if diff := cmp.Diff(step.want, lines(t, &text)); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", step.at, diff)
		}
	}
}

// No count is lost, and no value waits for more than a second while values come.
func TestABatchLosesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		b := &Batch{Writer: Writer{W: &text, Namespace: "Guards"}}
		at, added := int64(1_000_000), map[string]int64{}
		oldest := map[string]int64{} // the first value that waits, by activity
		for range rapid.IntRange(1, 50).Draw(rt, "values") {
			at += rapid.SampledFrom([]int64{0, 1, 300, 999, 1000, 1001, 60_000, -2000}).Draw(rt, "later")
			activity := rapid.SampledFrom([]string{"pin", "like"}).Draw(rt, "activity")
			n := rapid.Int64Range(0, 3).Draw(rt, "n")
			now := rapid.Bool().Draw(rt, "now")
			b.Add(time.UnixMilli(at), []Dimension{{"Activity", activity}}, []Value{{"Allowed", n}})
			if now {
				b.Flush()
			}
			added[activity] += n
			if _, waits := oldest[activity]; !waits {
				oldest[activity] = at
			}
			if text.Len() > 0 {
				clear(oldest)
				for _, l := range lines(t, &text) {
					subtract(rt, added, l)
				}
				if added["pin"] != 0 && now {
					rt.Fatalf("%v was not written at once", added)
				}
			}
			for activity, first := range oldest {
				if at-first > 2000 {
					rt.Fatalf("a value of %s at %d waits at %d", activity, first, at)
				}
			}
		}
		b.Flush()
		for _, l := range lines(t, &text) {
			subtract(rt, added, l)
		}
		if added["pin"] != 0 || added["like"] != 0 {
			rt.Fatalf("%v were not written", added)
		}
	})
}

func subtract(t *rapid.T, counts map[string]int64, line string) {
	t.Helper()
	var at, allowed, refused int64
	var activity string
	if _, err := fmt.Sscanf(line, "%d: %s allowed=%d refused=%d", &at, &activity, &allowed, &refused); err != nil {
		t.Fatal(err)
	}
	counts[activity] -= allowed
}

func TestWithoutAWriterNothingIsWritten(*testing.T) {
	Writer{}.Write(now, nil, []Value{{"Scanned", 9}})
	var b *Batch
	b.Add(time.Now(), nil, []Value{{"Allowed", 1}})
	b.Flush()
}
