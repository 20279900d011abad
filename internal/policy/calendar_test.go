package policy_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

// In every zone, each day, week and month begins where the one before it ends, and has
// the next number. Only a date that the zone skipped is left out: Samoa and Tokelau had
// no 30 December 2011. Without long bounds, one zone of 20 is tried.
func TestEachWindowBeginsWhereTheOneBeforeEnds(t *testing.T) {
	all := testkit.Zones(t)
	if len(all) < 500 {
		t.Fatalf("there are %d zones, want all of the database", len(all))
	}
	skipped := []string{"Pacific/Apia", "Pacific/Fakaofo"}
	end := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for i, name := range all {
		if i%testkit.Bound(20, 1) != 0 && name != "Antarctica/Casey" && !slices.Contains(skipped, name) {
			continue
		}
		for _, unit := range []string{"day", "week", "month"} {
			p := policy.Must("1/" + unit + " in " + name)
			at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
			r := p.Read(at, 0, nil)
			for at = r.ResetAt; at < end; at = r.ResetAt {
				before := r
				last := p.Read(at-1, 0, nil)
				for hour := at - 5*3600_000; hour < at; hour += 1800_000 { // clocks that go back begin no day twice
					if k := p.Read(hour, 0, nil).WindowKey; k > before.WindowKey {
						t.Fatalf("%s in %s: at %d the window is %d already", unit, name, hour, k)
					}
				}
				r = p.Read(at, 0, nil)
				aDay := r.WindowKey == before.WindowKey+2 && slices.Contains(skipped, name)
				switch {
				case last.WindowKey != before.WindowKey || last.ResetAt != at:
					t.Fatalf("%s in %s: the window %d ends at %d, and 1 ms before that the window is %d", unit, name, before.WindowKey, at, last.WindowKey)
				case r.WindowKey != before.WindowKey+1 && !aDay:
					t.Fatalf("%s in %s: after the window %d comes %d", unit, name, before.WindowKey, r.WindowKey)
				case r.ResetAt <= at || r.Window.Milliseconds() != r.ResetAt-at:
					t.Fatalf("%s in %s: the window %d has %v, and it ends %d ms after it begins", unit, name, r.WindowKey, r.Window, r.ResetAt-at)
				}
			}
		}
	}
}

// Days when clocks change. The vectors have usual days, weeks and months.
func TestWindowsOfACalendar(t *testing.T) {
	for _, tt := range []struct {
		text, at string
		length   time.Duration
		end      string
	}{
		{"9/day in Europe/Berlin", "2026-03-29T12:00:00Z", 23 * time.Hour, "2026-03-29T22:00:00Z"},
		{"9/day in Europe/Berlin", "2026-10-25T12:00:00Z", 25 * time.Hour, "2026-10-25T23:00:00Z"},
		{"9/day in America/Havana", "2026-03-08T12:00:00Z", 23 * time.Hour, "2026-03-09T04:00:00Z"},      // midnight is missing
		{"9/day in Antarctica/Casey", "2010-03-04T15:30:00Z", 27 * time.Hour, "2010-03-05T16:00:00Z"},    // 23:30 on the 4th again, but the 5th has begun
		{"9/day in Pacific/Apia", "2011-12-30T09:00:00Z", 24 * time.Hour, "2011-12-30T10:00:00Z"},        // the 29th; the 30th is skipped
		{"9/month in Pacific/Apia", "2011-12-30T09:00:00Z", 30 * 24 * time.Hour, "2011-12-31T10:00:00Z"}, // so December has 30 days
	} {
		at, err := time.Parse(time.RFC3339, tt.at)
		testkit.OK(t, err)
		r := policy.Must(tt.text).Read(at.UnixMilli(), 0, nil)
		if end := time.UnixMilli(r.ResetAt).UTC().Format(time.RFC3339); r.Window != tt.length || end != tt.end {
			t.Errorf("%s at %s: %v to %s, want %v to %s", tt.text, tt.at, r.Window, end, tt.length, tt.end)
		}
	}
}

func TestAnUnknownZoneHasAnErrorOfItsOwn(t *testing.T) {
	var zone *policy.ZoneError
	if _, err := policy.Parse("1/day in Mars"); !errors.As(err, &zone) || zone.Zone != "Mars" {
		t.Errorf("Parse with the zone Mars: %v, want a *ZoneError", err)
	}
}

// TestVectors runs the vectors of calendars in testdata/vectors, or in the directory
// in VECTORS.
func TestVectors(t *testing.T) {
	dir := os.Getenv("VECTORS")
	if dir == "" {
		dir = "testdata/vectors"
	}
	if _, err := os.Stat(dir); err != nil { // perhaps it is relative to the module's root
		dir = filepath.Join("../..", dir)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "next", "calendar.json"))
	if errors.Is(err, os.ErrNotExist) && os.Getenv("VECTORS") != "" {
		t.Skip("the directory in VECTORS has no next/calendar.json")
	}
	var cases []struct {
		Policy string
		Steps  []struct{ Now, WindowKey, ResetAt, StartsAt int64 }
	}
	if err := errors.Join(err, json.Unmarshal(raw, &cases)); err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for i, c := range cases {
		t.Run("calendar/"+strconv.Itoa(i)+" "+c.Policy, func(t *testing.T) {
			p := policy.Must(c.Policy)
			for _, s := range c.Steps {
				r := p.Read(s.Now, 0, nil)
				if r.WindowKey != s.WindowKey || r.ResetAt != s.ResetAt || r.ResetAt-r.Window.Milliseconds() != s.StartsAt {
					t.Errorf("at %d: window %d from %d to %d, want %+v", s.Now, r.WindowKey, r.ResetAt-r.Window.Milliseconds(), r.ResetAt, s)
				}
			}
		})
	}
}

// Each deployed function, and the command line, carries the zones along.
func TestEachProgramHasTheZones(t *testing.T) {
	const module = "github.com/cric-talk/guards/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{.Deps}}", module+"functions/...", module+"cmd/...").Output()
	testkit.OK(t, err)
	for program := range strings.Lines(string(out)) {
		if name, deps, _ := strings.Cut(program, " "); !strings.Contains(deps, " time/tzdata ") {
			t.Errorf("%s: time/tzdata is not linked", name)
		}
	}
}
