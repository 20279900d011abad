package live_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A name that stands twice in an entry, or half a character, damages that entry alone, and
// the next change leaves it as it stands.
func TestADamagedEntryDamagesNoOther(t *testing.T) {
	const right = `{"userId":"u3","until":"2030-01-01T00:00:00Z","reason":"x"}`
	for _, entry := range []string{
		`{"userId":"u1","userId":"u2","until":"2030-01-01T00:00:00Z","reason":"x"}`, `{"userId":"u1","until":"2030-01-01T00:00:00Z","reason":"\ud800"}`,
		`{"userId":"u1"}`, `null`, `[]`, `"u1"`, `7`,
	} {
		b, err := Stored{Version: 1, Document: []byte(`{"blocks":[` + entry + `,` + right + `]}`)}.Blocks()
		if err != nil || len(b.All) != 1 || len(b.Damaged) != 1 || len(b.Problems) != 1 {
			t.Fatalf("%s: %+v, %v, want one right block and a damaged one", entry, b, err)
		}
		if again, err := b.Stored(2); err != nil || !strings.Contains(string(again.Document), entry) {
			t.Errorf("%s becomes %s, %v", entry, again.Document, err)
		}
	}
	for _, entry := range []string{`{"limit":"20/1m","limit":"30/1m"}`, `{"limit":"20/1m\ud800"}`, `[]`} {
		s, err := Parse([]byte(`{"activities":{"create_post":` + entry + `,"pin":{"mode":"off"}}}`))
		if err != nil || len(s.Activities) != 1 || s.Damaged.Len() != 1 {
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.At(start).Stored(2); err != nil || string(again.Ends) != string(ends) {
		t.Errorf("the ends are %s, %v, want %s", again.Ends, err, ends)
	}
	if _, problems := s.Limits(cricket.All, nil); len(problems) > 0 {
		t.Error(problems)
	}
}
