package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/live"
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

// A damaged entry blocks nobody, and stays for somebody to look at. The others hold. A newer
// version may write members that this one does not know.
func TestADamagedEntryLeavesTheOtherBlocks(t *testing.T) {
	right := `{"userId": "u1", "until": "2030-01-01T00:00:00Z", "reason": "r", "newer": [1]}`
	for _, wrong := range []string{`5`, `null`, `{}`, `{"userId": "u2"}`, `{"userId": "", "until": "2030-01-01T00:00:00Z"}`, `{"userId": 2, "until": "2030-01-01T00:00:00Z"}`, `{"userId": "u 2", "until": "2030-01-01T00:00:00Z"}`, `{"userId": " room ", "until": "2030-01-01T00:00:00Z"}`, `{"userId": "u2", "until": "soon"}`} {
		for _, document := range []string{`{"blocks": [` + right + `, ` + wrong + `]}`, `{"blocks": [` + wrong + `, ` + right + `]}`} {
			b, err := Stored{Version: 1, Document: []byte(document)}.Blocks()
			if err != nil || len(b.All) != 1 || len(b.Damaged) != 1 || b.All[0].UserID != "u1" {
				t.Errorf("%s: %+v, %v, want the block of u1 and one damaged entry", document, b, err)
			}
			again, err := b.Stored(2)
			var entry bytes.Buffer
			if err != nil || json.Compact(&entry, []byte(wrong)) != nil || !bytes.Contains(again.Document, entry.Bytes()) {
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
