package liveedit_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A deploy has changed the window, so the live limit applies no more. Operators
// can still switch the activity off, and change its tiers.
func TestAPartThatDoesNotApplyDoesNotBlockTheOthers(t *testing.T) {
	table := &table{Stored: live.Stored{Version: 1, Document: []byte(`{"activities": {"act": {"limit": "20/1m", "tiers": {"old": "30/1m"}}}}`)}}
	page := limits.Guards{{Name: "g", Message: "m", Activities: []limits.Activity{{Name: "act", Limit: policy.Must("10/1h")}}}}
	edit := func(tier, limit, mode string) error {
		return Edit(t.Context(), table, page, Change{}, func(s Draft) (Draft, error) { return s.Set("act", tier, limit, mode), nil })
	}
	testkit.OK(t, errors.Join(edit("", "", "off"), edit("new", "40/1h", "")))
	if edit("new", "40/1m", "") == nil || edit("", "30/1m", "") == nil || edit("", "", "on") == nil {
		t.Error("a part that can't apply is stored")
	}
	if got := string(table.Document); got != `{"activities":{"act":{"limit":"20/1m","tiers":{"new":"40/1h","old":"30/1m"},"mode":"off"}}}` {
		t.Errorf("the settings are %s", got)
	}
}

// An edit of a tier does not change the settings that it is compared with. So a
// limit of another kind is refused, even if the tier already has a live limit.
func TestAChangedTierIsChecked(t *testing.T) {
	table := &table{}
	table.edit(t, func(s Draft) Draft { return s.Set("create_post", "premium", "30/1m", "") })
	before := string(table.Document)
	err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Set("create_post", "premium", "log 5/1h", ""), nil })
	if err == nil || string(table.Document) != before {
		t.Errorf("%v, and the settings are %s, want an error and %s", err, table.Document, before)
	}
}

// A limit is kept in its shortest form, and one that the code can't follow is not kept.
func TestSet(t *testing.T) {
	for _, tt := range []struct{ activity, tier, limit, kept string }{
		{"create_post", "", "20/1m", `{"activities":{"create_post":{"limit":"20/1m"}}}`},
		{"create_post", "", " fixed  20/60s", `{"activities":{"create_post":{"limit":"20/1m"}}}`},
		{"create_post", "gold", "30/1m", `{"activities":{"create_post":{"tiers":{"gold":"30/1m"}}}}`},
		{"send_message", "", "bucket 1/2s", `{"activities":{"send_message":{"limit":"bucket 1/2s"}}}`}, // without the code's keep
		{"create_post", "", "20/1h", ""},
		{"create_post", "", "0/1m", ""},
		{"like", "", "20/1m", ""},
		{"create_pots", "", "20/1m", ""},
	} {
		table := &table{}
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Set(tt.activity, tt.tier, tt.limit, ""), nil })
		if got := string(table.Document); got != tt.kept || (err == nil) != (tt.kept != "") {
			t.Errorf("%s %s %q: %v, and the document is %s, want %s", tt.activity, tt.tier, tt.limit, err, got, tt.kept)
		}
	}
	if _, err := (Draft{}).Unset("content.writes", ""); err == nil {
		t.Error("a number that nobody set can be undone")
	}
}

func TestUnset(t *testing.T) {
	table := &table{}
	table.edit(t, func(s Draft) Draft {
		return s.Set("create_post", "gold", "30/1m", "").Set("pin", "", "", "shadow")
	})
	for _, step := range []struct {
		activity, tier string
		want           string // the error
	}{
		{"create_post", "", ""},
		{"create_post", "", "create_post has no live limit to undo"},
		{"pin", "gold", "pin for tier gold has no live limit to undo"},
		{"pin", "", ""},
	} {
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Unset(step.activity, step.tier) })
		if err == nil && step.want != "" || err != nil && err.Error() != step.want {
			t.Errorf("unset %s of %s: %v, want %q", step.tier, step.activity, err, step.want)
		}
	}
	if string(table.Document) != "{}" || table.Version != 3 {
		t.Errorf("%s at version %d is left, want nothing at 3", table.Document, table.Version)
	}
}

// Settings may have parts that the code cannot apply, such as a limit of
// another kind than its activity has. The other parts can be changed and
// forgotten. The bad parts can be unset.
func TestSettingsOfOtherCodeAreEdited(t *testing.T) {
	table := &table{Stored: live.Stored{Version: 7, Document: []byte(`{"activities": {"gone": {"limit": "1/1m"}, "lost": {"mode": "off"},
		"create_post": {"limit": "20/1h"}, "ingest": {"limit": "50/1h"}, "like": {"limit": "1/1m"}, "pin": {"limit": "log 50/12h"}},
		"grants": [{"userId": "u1", "role": "admin", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`)}}
	table.edit(t, func(s Draft) Draft { return s.Set("add_comment", "", "", "off") })
	if n, err := Forget(t.Context(), table, cricket.All, "u1", time.Now()); n != 1 || err != nil {
		t.Errorf("Forget = %d, %v", n, err)
	}
	for _, name := range []string{"gone", "lost", "create_post", "ingest", "like"} {
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Unset(name, "") })
		if err != nil {
			t.Errorf("unset %s: %v", name, err)
		}
	}
	if got := string(table.Document); got != `{"activities":{"add_comment":{"mode":"off"},"pin":{"limit":"log 50/12h"}}}` {
		t.Errorf("the settings are %s, want them empty", got)
	}
}

// An edit is refused as a whole if one of its changes can't apply.
func TestEachChangeOfAnEditIsChecked(t *testing.T) {
	for name, edit := range map[string]func(Draft) Draft{
		"a second activity": func(s Draft) Draft {
			return s.Set("create_post", "", "20/1m", "").Set("pin", "", "20/1m", "")
		},
		"a grant beside an activity": func(s Draft) Draft {
			return s.Set("create_post", "", "20/1m", "").Grant(live.Grant{UserID: "u1"}, time.Now())
		},
	} {
		table := &table{}
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return edit(s), nil })
		if err == nil || table.Version != 0 {
			t.Errorf("%s: %v and version %d, want an error and nothing stored", name, err, table.Version)
		}
	}
}

func TestTheBoundsOfGrants(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, reason string) live.Grant {
		return live.Grant{UserID: user, Tier: "premium", Until: now.Add(time.Hour), Reason: reason}
	}
	table := &table{}
	add := func(g live.Grant) error {
		return Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Grant(g, now), nil })
	}
	for i := range 200 {
		if err := add(grant(fmt.Sprint("user", i), strings.Repeat("r", 200))); err != nil {
			t.Fatalf("grant %d, with a reason of 200 characters: %v", i+1, err)
		}
	}
	if err := add(grant("one-more", "r")); err == nil || !strings.Contains(err.Error(), "there would be 201 grants, want at most 200") {
		t.Errorf("the 201st grant: %v", err)
	}
	if err := add(grant("user1", strings.Repeat("r", 201))); err == nil {
		t.Error("a reason of 201 characters is stored")
	}
}

// A live lockout of a group is set for the group. An activity's own live limit has the group's
// lockout of now, and the group's stays as long as an activity has it in its own live limit.
func TestTheLockoutOfAGroupIsSetForTheGroup(t *testing.T) {
	page, err := limits.Link([]guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{
		{Name: "sign_in", Group: "door", Limit: "day: 20/1d, try: lockout 5/15m for 30m"},
		{Name: "unlock", Group: "door", Limit: "try: lockout 5/15m for 30m"},
	}}})
	testkit.OK(t, err)
	table := &table{}
	for i, step := range []struct {
		name, limit string // empty: it is undone
		refused     bool
	}{
		{name: "sign_in", limit: "day: 30/1d, try: lockout 4/15m for 30m", refused: true},
		{name: "sign_in", limit: "day: 30/1d, try: lockout 5/15m for 30m"},
		{name: "door.try", limit: "lockout 4/15m for 20m", refused: true}, // sign_in has its own live limit
		{name: "sign_in"},
		{name: "door.try", limit: "lockout 4/15m for 20m"},
		{name: "sign_in", limit: "day: 30/1d, try: lockout 5/15m for 30m", refused: true},
		{name: "sign_in", limit: "day: 30/1d, try: lockout 4/15m for 20m"},
		{name: "door.try", refused: true},
		{name: "sign_in"},
		{name: "door.try"},
	} {
		err := Edit(t.Context(), table, page, Change{}, func(d Draft) (Draft, error) {
			if step.limit == "" {
				return d.Unset(step.name, "")
			}
			return d.Set(step.name, "", step.limit, ""), nil
		})
		if refused := errors.Is(err, live.ErrGroupLockout); refused != step.refused || !refused && err != nil {
			t.Errorf("step %d, %s %q: %v, want a refusal: %v", i, step.name, step.limit, err, step.refused)
		}
	}
}

// What is set again stays, unless the edit has an end for it. What is undone has no end, and
// everything else keeps its own.
func TestAnEditKeepsTheEndsOfOthers(t *testing.T) {
	until := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	ending := Draft{}
	for _, part := range [][3]string{{"", "log 50/12h", ""}, {"gold", "log 90/12h", ""}, {"", "", "shadow"}} {
		tier, limit, mode := part[0], part[1], part[2]
		ending = ending.Set("pin", tier, limit, mode).Until("pin", tier, limit, mode, until)
	}
	for name, tt := range map[string]struct {
		edit func() (Draft, error)
		want []string // the parts that still end
	}{
		"nothing":       {func() (Draft, error) { return ending, nil }, []string{"", "gold", "mode"}},
		"the limit":     {func() (Draft, error) { return ending.Set("pin", "", "log 50/12h", ""), nil }, []string{"gold", "mode"}},
		"a tier":        {func() (Draft, error) { return ending.Set("pin", "gold", "log 90/12h", ""), nil }, []string{"", "mode"}},
		"the mode":      {func() (Draft, error) { return ending.Set("pin", "", "", "shadow"), nil }, []string{"", "gold"}},
		"undo the mode": {func() (Draft, error) { return ending.Set("pin", "", "", AsDeployed), nil }, []string{"", "gold"}},
		"undo a tier":   {func() (Draft, error) { return ending.Unset("pin", "gold") }, []string{"", "mode"}},
		"undo all":      {func() (Draft, error) { return ending.Unset("pin", "") }, nil},
		"another one":   {func() (Draft, error) { return ending.Set("create_post", "", "20/1m", ""), nil }, []string{"", "gold", "mode"}},
	} {
		d, err := tt.edit()
		end := d.Ends["pin"]
		got := slices.Sorted(maps.Keys(end.Limits))
		if end.Mode != (live.Until{}) {
			got = append(got, "mode")
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q end, %v, want %q", name, got, err, tt.want)
		}
	}
}

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
		testkit.OK(t, Edit(t.Context(), table, cricket.All, Change{At: minute(i), By: step.by, Why: step.why}, step.edit))
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
	testkit.OK(t, Edit(t.Context(), table, cricket.All, Change{At: at, By: "ann"}, set))
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

func TestGrantsAreEdited(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, role, tier string, days int) live.Grant {
		return live.Grant{UserID: user, Role: role, Tier: tier, Until: now.AddDate(0, 0, days), Reason: "support"}
	}
	table := &table{}
	table.edit(t, func(s Draft) Draft {
		s = s.Grant(grant("u1", "admin", "", 1), now)
		s = s.Grant(grant("u1", "", "gold", 1), now)
		s = s.Grant(grant("u1", "", "premium", 2), now)   // replaces gold
		s = s.Grant(grant(" room u1", "", "big", 3), now) // a subject
		return s.Grant(grant("u2", "admin", "", 3), now)
	})
	s, _, err := Read(t.Context(), table)
	for after, want := range map[time.Duration]string{
		24*time.Hour - 1: "u1 admin, u1 premium,  room u1 big, u2 admin", 24 * time.Hour: "u1 premium,  room u1 big, u2 admin", 48 * time.Hour: " room u1 big, u2 admin",
	} {
		var granted []string
		for _, g := range GrantsAt(s, now.Add(after)) {
			granted = append(granted, g.UserID+" "+g.Role+g.Tier)
		}
		if got := strings.Join(granted, ", "); err != nil || got != want {
			t.Errorf("after %v: %s, %v, want %s", after, got, err, want)
		}
	}
	for says, g := range map[string]live.Grant{
		"either a role or":  {UserID: "u1", Until: now, Reason: "r"},
		"time when it ends": {UserID: "u1", Role: "admin", Reason: "r"},
		"a reason":          {UserID: "u1", Role: "admin", Until: now},
		"userId":            {UserID: "u 1", Role: "admin", Until: now, Reason: "r"},
		"userId is missing": {UserID: " room ", Tier: "big", Until: now, Reason: "r"},
		"userId has U+0020": {UserID: " config", Tier: "big", Until: now, Reason: "r"},
		"character 2":       {UserID: " room r 42", Tier: "big", Until: now, Reason: "r"},
		"roles are about":   {UserID: " room r42", Role: "admin", Until: now, Reason: "r"},
	} {
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Grant(g, now.AddDate(-1, 0, 0)), nil })
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", g, err, says)
		}
	}
	// A user who is forgotten has no grants left, even if somebody else edits
	// the settings at the same time.
	table.race = func() { table.edit(t, func(s Draft) Draft { return s.Set("pin", "", "log 50/12h", "") }) }
	for _, want := range []int{2, 0} {
		if n, err := Forget(t.Context(), table, cricket.All, "u1", now); err != nil || n != want {
			t.Errorf("Forget = %d, %v, want %d", n, err, want)
		}
	}
	if document := string(table.Document); strings.Contains(document, `"u1"`) || !strings.Contains(document, `" room u1"`) || !strings.Contains(document, "u2") || !strings.Contains(document, "50/12h") {
		t.Errorf("the document is %s, want no grants", document)
	}
	for _, c := range table.history {
		if strings.Contains(fmt.Sprint(c), "u1") {
			t.Errorf("the history names a user: %+v", c)
		}
	}
}
