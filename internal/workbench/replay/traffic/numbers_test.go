package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A line can have a number of its caller. In a known log, only a named field is one.
func TestNumbersOfLines(t *testing.T) {
	const w3c = "#Fields: date time c-ip cs-method cs-uri-stem sc-bytes limit\n2026-01-05 12:00:00 192.0.2.1 GET / 7 8\n2026-01-05 12:00:01 192.0.2.1 GET / - 9\n"
	for _, tt := range []struct {
		o          Options
		text, want string
	}{
		{Options{Numbers: true}, "time,user,activity,limit\n1767571200,u1,a,500\n1767571200,u1,a,\n1767571200,u1,a,-\n1767571200,u1,a,0\n1767571200,u1,a,1000000\n", "500 - - 0 1000000 "},
		{Options{Numbers: true}, header + "1767571200,u1,a\n", "- "},
		{Options{}, "time,user,activity,limit\n1767571200,u1,a,many\n", "- "},
		{Options{Numbers: true, Columns: Columns{Limit: "bought"}}, "time,user,activity,bought,limit\n1767571200,u1,a,7,8\n", "7 "},
		{Options{Numbers: true}, `{"time":1767571200,"user":"u1","activity":"a","limit":500}` + "\n" + `{"time":1767571200,"user":"u1","activity":"a","limit":null}` + "\n" + `{"time":1767571200,"user":"u1","activity":"a","limit":"5"}` + "\n", "500 - 5 "},
		{Options{Numbers: true, Columns: Columns{Limit: "plan.calls"}}, `{"time":1767571200,"user":"u1","activity":"a","plan":{"calls":3}}` + "\n", "3 "},
		{Options{Numbers: true}, w3c, "- - "},
		{Options{Numbers: true, Columns: Columns{Limit: "sc-bytes"}}, w3c, "7 - "},
	} {
		lines, err := read(tt.o, tt.text)
		var got strings.Builder
		for _, line := range lines {
			if line.Limit == nil {
				got.WriteString("- ")
			} else {
				fmt.Fprint(&got, *line.Limit, " ")
			}
		}
		if err != nil || got.String() != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.text, got.String(), err, tt.want)
		}
	}
	for _, text := range []string{"many", "-1", "1.5", "1000001", "secret1", "1e3"} {
		checkRefused(t, Options{Numbers: true}, "time,user,activity,limit\n1767571200,u1,a,"+text+"\n", "line 2: limit is something else, want a whole number from 0 to 1000000, or nothing")
	}
	checkRefused(t, Options{Numbers: true}, `{"time":1767571200,"user":"u1","activity":"a","limit":{"a":1}}`, "line 1: limit is something else, want a whole number")
	checkRefused(t, Options{Numbers: true, Columns: Columns{Limit: "bought"}}, header, `line 1: the header time,user,activity has no column "bought"`)
	checkRefused(t, Options{Numbers: true, Columns: Columns{Limit: "bought"}}, w3c, `line 2: --columns limit is "bought", want a field of a W3C log: date, `)
}
