package command

import (
	"strings"
	"testing"
	"time"
)

// People write the last day of all for "forever". The JSON of a time ends with the year
// 9999, so such a grant ends a second before the year 10000, wherever it begins there.
func TestAGrantForever(t *testing.T) {
	p := ofApp(t)
	const last = "u1 has the role admin until 9999-12-31T23:59:59Z\n"
	for _, until := range []string{"9999-12-31", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999Z"} {
		if status, out, log := p.run("grant --user u1 --role admin --until " + until + " --reason r"); status != done || !strings.HasPrefix(out, last) {
			t.Errorf("until %s: status %d, %s%s, want %s", until, status, out, log, last)
		}
	}
	p.contains("limits diff", "9999-12-31T23:59:59Z")
	p.contains("limits diff --json", `"until":"9999-12-31T23:59:59Z"`)
	p.contains("limits history", "until 9999-12-31T23:59:59Z")
	for _, until := range []string{"10000-01-01", "10000-01-01T00:00:00Z", "forever"} {
		p.fails("grant --user u1 --role admin --until "+until+" --reason r", wrongUse, "9999-12-31 for no end")
	}
	for _, until := range []string{"0001-01-01", "0000-01-01T00:00:00+12:00"} {
		p.fails("grant --user u1 --role admin --until "+until+" --reason r", wrongUse, "want a time in the future")
	}
}

func TestUntilIsATimeThatJSONHolds(t *testing.T) {
	now := time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{"9999-12-31", "9999w", "9999-12-31T23:00:00-02:00", "9999d", "1d"} {
		until, err := parseUntil(text, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := until.MarshalJSON(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
