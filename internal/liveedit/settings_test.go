package liveedit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// Each limit, mode and grant has beside it who set it, when and why. The same
// limit again is no change, and what nobody changes keeps its stamp.
func TestEachPartIsStamped(t *testing.T) {
	table := &table{}
	minute := func(n int) time.Time { return time.Date(2026, 3, 1, 9, n, 0, 123_456_789, time.UTC) }
	grant := live.Grant{UserID: "u1", Role: "admin", Until: minute(59), Reason: "load test"}
	const (
		ann    = `"":{"of":"log 50/12h","since":"2026-03-01T09:00:00.123Z","by":"ann","why":"a launch"}`
		bob    = `"modeSet":{"of":"shadow","since":"2026-03-01T09:01:00.123Z","by":"bob"}`
		cid    = `"since":"2026-03-01T09:02:00.123Z","by":"cid"}`
		grants = `"grants":[{"userId":"u1","role":"admin","until":"2026-03-01T09:59:00.123456789Z","reason":"load test","set":{` + cid + `}]`
	)
	for i, step := range []struct {
		by, why string
		edit    func(Draft) (Draft, error)
		want    string // the document
	}{
		{
			"ann", "a launch", func(s Draft) (Draft, error) { return s.Set("pin", "", "log 50/12h", ""), nil },
			`{"activities":{"pin":{"limit":"log 50/12h","set":{` + ann + `}}}}`,
		},
		{
			"bob", "", func(s Draft) (Draft, error) { return s.Set("pin", "", "log 50/720m", "shadow"), nil }, // the same limit
			`{"activities":{"pin":{"limit":"log 50/12h","mode":"shadow","set":{` + ann + `},` + bob + `}}}`,
		},
		{
			"cid", "", func(s Draft) (Draft, error) {
				return s.Set("pin", "gold", "log 90/12h", "").Grant(grant, minute(2)), nil
			},
			`{"activities":{"pin":{"limit":"log 50/12h","tiers":{"gold":"log 90/12h"},"mode":"shadow","set":{` + ann + `,"gold":{"of":"log 90/12h",` + cid + `},` + bob + `}},` + grants + `}`,
		},
		{
			"dan", "", func(s Draft) (Draft, error) { return s.Unset("pin", "gold") },
			`{"activities":{"pin":{"limit":"log 50/12h","mode":"shadow","set":{` + ann + `},` + bob + `}},` + grants + `}`,
		},
	} {
		if err := Edit(t.Context(), table, cricket.All, Change{At: minute(i), By: step.by, Why: step.why}, step.edit); err != nil {
			t.Fatal(err)
		}
		if got := string(table.Document); got != step.want {
			t.Errorf("step %d: the settings are\n%s, want\n%s", i, got, step.want)
		}
	}
}

// A limit that was written by hand gets a stamp when an operator sets it again.
func TestALimitWrittenByHandIsStampedWhenItIsSet(t *testing.T) {
	table := &table{Stored: live.Stored{Version: 1, Document: []byte(`{"activities":{"pin":{"limit":"log 60/12h","set":{"":{"of":"log 50/12h","by":"bob"}}}},"grants":[]}`)}}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	set := func(s Draft) (Draft, error) { return s.Set("pin", "", "log 60/12h", ""), nil }
	if err := Edit(t.Context(), table, cricket.All, Change{At: at, By: "ann"}, set); err != nil {
		t.Fatal(err)
	}
	const want = `{"activities":{"pin":{"limit":"log 60/12h","set":{"":{"of":"log 60/12h","since":"2026-03-01T09:00:00Z","by":"ann"}}}}}`
	if got := string(table.Document); got != want {
		t.Errorf("the settings are\n%s, want\n%s", got, want)
	}
}

// Who and why are part of the document, so they are short.
func TestLongNamesAndReasonsAreRefused(t *testing.T) {
	for _, c := range []Change{{By: strings.Repeat("b", 101)}, {By: "bob", Why: strings.Repeat("w", 201)}} {
		err := Edit(t.Context(), nil, nil, c, nil)
		if err == nil || !strings.HasSuffix(err.Error(), "want at most 100 and 200") {
			t.Errorf("%d and %d bytes: %v", len(c.By), len(c.Why), err)
		}
	}
}
