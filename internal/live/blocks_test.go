package live_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/strictjson"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// blockedNow returns the ends of the blocks that hold for these users.
func blockedNow(t *testing.T, l *Limits, at time.Time, users ...string) (ends []string) {
	t.Helper()
	for _, user := range users {
		b := l.Terms(Query{Activity: activityOf(t, "create_post"), UserID: user, At: at}).Block
		ends = append(ends, fmt.Sprint(user, " ", b.InForce(at)))
	}
	return ends
}

// A damaged entry blocks nobody, and stays as it is for somebody to look at. So does one with a name
// that stands twice, or with half a character. The others hold. A newer version may write members
// that this one does not know.
func TestADamagedEntryLeavesTheOtherBlocks(t *testing.T) {
	right := `{"userId": "u1", "until": "2030-01-01T00:00:00Z", "reason": "r", "newer": [1]}`
	for _, wrong := range []string{
		`5`, `null`, `[]`, `{}`, `"u1"`, `{"userId":"u2"}`, `{"userId":"","until":"2030-01-01T00:00:00Z"}`, `{"userId":2,"until":"2030-01-01T00:00:00Z"}`,
		`{"userId":"u 2","until":"2030-01-01T00:00:00Z"}`, `{"userId":" room ","until":"2030-01-01T00:00:00Z"}`, `{"userId":"u2","until":"soon"}`,
		`{"userId":"u1","userId":"u2","until":"2030-01-01T00:00:00Z","reason":"x"}`, `{"userId":"u1","until":"2030-01-01T00:00:00Z","reason":"\ud800"}`,
	} {
		for _, document := range []string{`{"blocks": [` + right + `, ` + wrong + `]}`, `{"blocks": [` + wrong + `, ` + right + `]}`} {
			b, err := Stored{Version: 1, Document: []byte(document)}.Blocks()
			if err != nil || len(b.All) != 1 || len(b.Damaged.Blocks) != 1 || len(b.Damaged.Problems) != 1 || b.All[0].UserID != "u1" {
				t.Errorf("%s: %+v, %v, want the block of u1 and one damaged entry", document, b, err)
			}
			if again, err := b.Stored(2); err != nil || !strings.Contains(string(again.Document), wrong) {
				t.Errorf("%s is stored as %s, %v, want the damaged entry in it", document, again.Document, err)
			}
		}
	}
	for _, document := range []string{``, `[]`, `{"blocks": 5}`, `{"block": []}`, `{"blocks": {}}`} {
		if _, err := (Stored{Version: 1, Document: []byte(document)}).Blocks(); !errors.As(err, new(*DocumentError)) {
			t.Errorf("%q: %v, want a DocumentError", document, err)
		}
	}
}

// A follower reads both documents. One that can't be read leaves the last good one of its
// kind in force, and the other one is followed.
func TestBlocksAreFollowedBesideTheLimits(t *testing.T) {
	follow(t, func(t *testing.T, b bench) {
		log := new(bytes.Buffer)
		b.Log = slog.New(slog.NewTextHandler(log, nil))
		set := func(document string) {
			b.blocks = Stored{Version: b.blocks.Version + 1, Document: []byte(document)}
		}
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		set(`{"blocks": [{"userId": "u1", "until": "` + until + `"}]}`)
		b.set("20/1m")
		b.look(20, 1)
		want := func(ends ...string) {
			t.Helper()
			if diff := cmp.Diff(ends, blockedNow(t, b.Limits(), time.Now(), "u1", "u2")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		want("u1 true", "u2 false")
		b.set("5/1m")
		b.blocksErr = errors.New("away")
		b.look(5, 1)
		want("u1 true", "u2 false")
		b.after(5*time.Second, 5, 1) // a read that failed is repeated soon
		b.blocksErr = nil
		b.err = errors.New("away")
		set(`{"blocks": [{"userId": "u2", "until": "` + until + `"}, {"userId": "canary-user-4711"}]}`)
		b.after(5*time.Second, 5, 1)
		want("u1 false", "u2 true")
		if !strings.Contains(log.String(), "not=applied") || !strings.Contains(log.String(), "1 of the entries in the document of blocks can't be read") || strings.Contains(log.String(), "canary") {
			t.Errorf("log: %s", log)
		}
		b.err = nil
		set(`{"blocks": 5}`)
		b.after(5*time.Second, 5, 1)
		want("u1 false", "u2 true")
		b.blocks = Stored{} // deleted
		b.after(5*time.Second, 5, 1)
		want("u1 false", "u2 false")
	})
}

// What code from before there were blocks follows does not change because of them: the
// document of the settings has no member for them.
func TestBlocksAreNoPartOfTheSettings(t *testing.T) {
	with := (*Limits)(nil).With(Blocks{All: []Block{{UserID: "u1", Until: time.Now().Add(time.Hour)}}})
	if got := blockedNow(t, with, time.Now(), "u1"); got[0] != "u1 true" {
		t.Error(got)
	}
	next, problems := Settings{Activities: map[string]Override{"create_post": {Limit: "20/1m"}}}.Limits(cricket.All, with)
	if got := blockedNow(t, next, time.Now(), "u1"); len(problems) > 0 || got[0] != "u1 true" {
		t.Errorf("%v, %v, want the block to stay beside another limit", got, problems)
	}
}

// A damaged override damages no other one, and the next change leaves it as it stands.
func TestADamagedOverrideDamagesNoOther(t *testing.T) {
	for _, entry := range []string{`{"limit":"20/1m","limit":"30/1m"}`, `{"limit":"20/1m\ud800"}`, `[]`} {
		s, err := Parse([]byte(`{"activities":{"create_post":` + entry + `,"pin":{"mode":"off"}}}`))
		if err != nil || len(s.Activities) != 1 || len(s.Damaged.Problems) != 1 {
			t.Fatalf("%s: %+v, %v, want one right override and a damaged one", entry, s, err)
		}
		if again, err := s.Document(); err != nil || !strings.Contains(string(again), entry) {
			t.Errorf("%s becomes %s, %v", entry, again, err)
		}
	}
}

// Of a document of blocks that is cut off, those before the cut can still be found.
func TestBlocksBeforeACutAreFound(t *testing.T) {
	for document, found := range map[string]int{
		`{"blocks":[{"userId":"u1","until":"2030-01-01T00:00:00Z"},{"userId":"u2","un`: 1,
		`{"blocks":[{"userId":"u1","until":"2030-01-01T00:00:00Z"}],"x":1}`:            1,
		`{"blocks":[{"userId":"u1","until":"2030-01-01T00:00:00Z"}],"blocks":[]}`:      1,
		`{"blocks":[{"userId":"u1","until":"2030-01-01T00:00:00Z"}]} {}`:               1,
		`{"blocks":null}`: 0, `null`: 0, ``: 0,
	} {
		if b, err := (Stored{Version: 1, Document: []byte(document)}).Blocks(); err == nil || len(b.All) != found {
			t.Errorf("%s: %d blocks, %v, want %d and an error", document, len(b.All), err, found)
		}
	}
}

// A damaged override keeps what an instance knows of it, with its end. What else there is
// about the activity is followed: a kill switch must not fail because of a mistake beside it.
func TestOnlyADamagedOverrideStaysAsItIs(t *testing.T) {
	guards := grouped(t, "posts: 10/1m, writes: 100/1h cost 5", "writes: 100/1h")
	start := time.UnixMilli(1_700_000_000_000)
	ends := fmt.Appendf(nil, `{"create_post": {"mode": {"of": "off", "until": %q}}, "pin": 5}`, start.Add(time.Hour).Format(time.RFC3339))
	var l *Limits
	for i, step := range []struct {
		document string
		after    time.Duration
		want     string
	}{
		{`{"activities": {"content.writes": {"limit": "200/1h"}, "create_post": {"mode": "shadow"}}}`, 0, "posts: 10/1m, writes: 200/1h cost 5 shadow"},
		{`{"activities": {"content.writes": 7, "create_post": {"mode": "off"}}}`, 0, "posts: 10/1m, writes: 200/1h cost 5 off"},
		{`{"activities": {"content.writes": 7, "content.posts": {"limit": "7/1m"}, "create_post": 8}}`, 0, "posts: 7/1m, writes: 200/1h cost 5 off"},
		{`{"activities": {"content.writes": 7, "create_post": 8}}`, time.Hour - 1, "posts: 10/1m, writes: 200/1h cost 5 off"},
		{`{"activities": {"content.writes": 7, "create_post": 8}}`, time.Hour, "posts: 10/1m, writes: 200/1h cost 5 "},
		{`{"activities": {"create_post": 8}}`, 0, "posts: 10/1m, writes: 100/1h cost 5 off"},
	} {
		s, err := Stored{Version: 1, Document: []byte(step.document), Ends: ends}.Settings()
		testkit.OK(t, err)
		l, _ = s.Limits(guards, l)
		_, code, _ := guards.Activity("create_post")
		terms := l.Terms(Query{Activity: code, UserID: "u", At: start.Add(step.after)})
		if got := terms.Limit.String() + " " + terms.Mode; got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

// The end of a damaged override outlives an edit of another one, because somebody can repair
// the override by hand.
func TestTheEndOfADamagedOverrideStays(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	ends := fmt.Appendf(nil, `{"create_post":{"mode":{"of":"off","until":%q}}}`, start.Add(time.Hour).UTC().Format(time.RFC3339))
	s, err := Stored{Version: 1, Document: []byte(`{"activities": {"create_post": {"mode": "off", "limit": 5}}}`), Ends: ends}.Settings()
	testkit.OK(t, err)
	if again, err := s.At(start).Stored(2); err != nil || string(again.Ends) != string(ends) {
		t.Errorf("the ends are %s, %v, want %s", again.Ends, err, ends)
	}
	if _, problems := s.Limits(cricket.All, nil); len(problems) > 0 {
		t.Error(problems)
	}
}

// limitsOf returns the limits of the user and of each subject.
func limitsOf(terms Terms) string {
	var all []string
	for part := range terms.Parts {
		all = append(all, part.Limit.String())
	}
	return strings.Join(all, " ")
}

// A granted tier decides, and not the number that the caller gives for the same one. The
// grants of others leave the number as it is.
func TestAGrantedTierWinsOverANumber(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	pro := limits.Tiers{"pro": policy.Must("7/1m max 50")}
	write := limits.Activity{
		Name: "write", Limit: policy.Must("1/1m max 50"), Tiers: pro,
		Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("2/1m max 50"), Tiers: pro}},
	}
	guards := limits.Guards{{Name: "g", Message: "m", Activities: []limits.Activity{write}}}
	for who, want := range map[string]string{"": "30/1m max 50 40/1m max 50", "u": "7/1m max 50 40/1m max 50", limits.SubjectID("room", "r"): "30/1m max 50 7/1m max 50"} {
		l, problems := Settings{Grants: []Grant{{UserID: who, Tier: "pro", Until: now.Add(time.Hour), Reason: "r"}}}.Limits(guards, nil)
		got := limitsOf(l.Terms(Query{
			Activity: write, UserID: "u", Subjects: map[string]string{"room": "r"}, At: now,
			Numbers: map[string]int64{"write": 30, "room": 40},
		}))
		if got != want || len(problems) > 0 {
			t.Errorf("a grant of %q: %s, %v, want %s", who, got, problems, want)
		}
	}
}

func TestGrants(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, role, tier string, days int) Grant {
		return Grant{UserID: user, Role: role, Tier: tier, Until: now.AddDate(0, 0, days), Reason: "support"}
	}
	l, problems := Settings{Grants: []Grant{
		grant("u1", "admin", "", 1), grant("u1", "", "premium", 2), grant(" room u1", "", "big", 3), grant("u2", "admin", "", 3),
	}}.Limits(cricket.All, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		user       string
		after      time.Duration
		role, tier string
	}{
		{"u1", 0, "admin", "premium"},
		{"u1", 24*time.Hour - 1, "admin", "premium"},
		{"u1", 24 * time.Hour, "", "premium"},
		{"u1", 48 * time.Hour, "", ""},
		{"u2", 48 * time.Hour, "admin", ""},
		{"u3", 0, "", ""},
	} {
		c := Query{Activity: activityOf(t, "create_post"), UserID: tt.user, BypassRoles: []string{"admin"}, At: now.Add(tt.after)}
		if got := l.Terms(c); got.Role != tt.role || got.Tier != tt.tier {
			t.Errorf("%s after %v has %q, %q, want %q, %q", tt.user, tt.after, got.Role, got.Tier, tt.role, tt.tier)
		}
	}
}

// A tier that is granted to somebody changes that one's limit and nobody else's: the
// user's, the room's or the tenant's. A tier that the caller names is for all of them.
func TestAGrantedTierIsForTheOneWhoHasIt(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	part := func(name, limit, pro string) limits.Subject {
		return limits.Subject{Name: name, Limit: policy.Must(limit), Tiers: limits.Tiers{"pro": policy.Must(pro), "max": policy.Must("99/1m")}}
	}
	user := part("", "1/1m", "11/1m")
	write := limits.Activity{
		Name: "write", Limit: user.Limit, Tiers: user.Tiers,
		Subjects: []limits.Subject{part("room", "2/1m", "12/1m"), part("tenant", "3/1m", "13/1m")},
	}
	guards := limits.Guards{{Name: "g", Message: "m", Activities: []limits.Activity{write}}}
	room, tenant := limits.SubjectID("room", "r"), limits.SubjectID("tenant", "t")
	for name, tt := range map[string]struct {
		grants map[string]string // by who has them: the granted tier
		tier   string            // that the caller names
		want   string            // the limits of the user, the room and the tenant
	}{
		"nobody":                            {nil, "", "1/1m 2/1m 3/1m"},
		"the caller's":                      {nil, "pro", "11/1m 12/1m 13/1m"},
		"the user":                          {map[string]string{"u": "pro"}, "", "11/1m 2/1m 3/1m"},
		"the room":                          {map[string]string{room: "pro"}, "", "1/1m 12/1m 3/1m"},
		"the tenant":                        {map[string]string{tenant: "pro"}, "", "1/1m 2/1m 13/1m"},
		"a tenant of the room's name":       {map[string]string{limits.SubjectID("tenant", "r"): "pro"}, "", "1/1m 2/1m 3/1m"},
		"a user of the room's name":         {map[string]string{"r": "pro"}, "", "1/1m 2/1m 3/1m"},
		"room and tenant":                   {map[string]string{room: "pro", tenant: "max"}, "", "1/1m 12/1m 99/1m"},
		"the user, and the caller's":        {map[string]string{"u": "max"}, "pro", "99/1m 12/1m 13/1m"},
		"the room, and the caller's":        {map[string]string{room: "max"}, "pro", "11/1m 99/1m 13/1m"},
		"the user, by a tier of nobody":     {map[string]string{"u": "none"}, "pro", "11/1m 12/1m 13/1m"},
		"the tenant, and a tier of nobody":  {map[string]string{tenant: "pro"}, "none", "1/1m 2/1m 13/1m"},
		"the user by one, the room another": {map[string]string{"u": "pro", room: "max"}, "", "11/1m 99/1m 3/1m"},
	} {
		var s Settings
		for id, tier := range tt.grants {
			s.Grants = append(s.Grants, Grant{UserID: id, Tier: tier, Until: now.Add(time.Hour), Reason: "r"})
		}
		l, problems := s.Limits(guards, nil)
		got := limitsOf(l.Terms(Query{Activity: write, UserID: "u", Subjects: map[string]string{"room": "r", "tenant": "t"}, Tier: tt.tier, At: now}))
		if got != tt.want || len(problems) > 0 {
			t.Errorf("%s: %s, %v, want %s", name, got, problems, tt.want)
		}
	}
}

// The error of a damaged document tells what is wrong and where. What stands before the damage
// can still be found, and of a name that an object has twice, the last.
func TestADamagedDocumentTellsWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ document, problem, found string }{
		{`null`, " is a null", "[] 0"},
		{`{"activities": [], "grants": [{}]}`, "/activities is a [", "[] 0"},
		{`{"activities": {"a": {}}, "grants": null}`, "/grants is a null", "[a] 0"},
		{`{"grants": [{}], "blocks": [], "activities": {"a": {}}}`, `the document has the unknown member "blocks"`, "[] 1"},
		{`{"grants": [{}], "": [], "activities": {"a": {}}}`, `the document has the unknown member ""`, "[] 1"},
		{`{"activities": {"a": 5, "b": {}, "a": {}}}`, `duplicate object member name "a"`, "[a b] 0"},
		{`{"activities": {"a": {}}, "grants": [{}], "activities": {"b": {}}, "grants": [{}]}`, `duplicate object member name "activities"`, "[a b] 2"},
		{`{"activities": {"a": {}, "b": {"mode": "of`, `unexpected EOF within "/activities/b/mode" after offset 42`, "[a] 0"},
		{`{"activities": {"a": {}}, "grants": [{}]} {}`, "something follows the document", "[a] 1"},
	} {
		s, err := Parse([]byte(tt.document))
		e, ok := errors.AsType[*DocumentError](err)
		if !ok || strictjson.Problem(e.Cause) != tt.problem {
			t.Errorf("%s: %v, want %s", tt.document, e, tt.problem)
		}
		if got := fmt.Sprint(slices.Sorted(maps.Keys(s.Activities)), " ", len(s.Grants)); got != tt.found {
			t.Errorf("%s: %s are found, want %s", tt.document, got, tt.found)
		}
	}
}

// An edit can set what is damaged. What it sets is kept.
func TestAnEditWinsOverWhatIsDamaged(t *testing.T) {
	end := End{Mode: Until{Of: Off, Until: time.UnixMilli(1_700_000_000_000)}}
	s := Settings{
		Activities: map[string]Override{"pin": {Mode: Off}}, Ends: Ends{"pin": end},
		Damaged: Damaged{Activities: map[string]strictjson.Value{"pin": strictjson.Value("7")}, Ends: map[string]strictjson.Value{"pin": strictjson.Value("7")}},
	}
	stored := testkit.Must(s.Stored(1))(t)
	again := testkit.Must(stored.Settings())(t)
	if again.Activities["pin"].Mode != Off || !again.Ends["pin"].Mode.Until.Equal(end.Mode.Until) {
		t.Errorf("%s beside %s reads as %+v", stored.Document, stored.Ends, again)
	}
}

// A damaged override keeps the one before it, even if the document has no other.
func TestOnlyDamagedOverrides(t *testing.T) {
	off, _ := Settings{Activities: map[string]Override{"create_post": {Mode: Off}}}.Limits(cricket.All, nil)
	now, _ := Settings{Damaged: Damaged{Activities: map[string]strictjson.Value{"create_post": strictjson.Value("7")}}}.Limits(cricket.All, off)
	_, post, _ := cricket.All.Activity("create_post")
	if _, mode := now.Activity(post); mode != Off {
		t.Errorf("the mode is %q, want off", mode)
	}
}
