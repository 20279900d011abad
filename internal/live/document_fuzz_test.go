package live_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// Whatever the settings document holds, each activity keeps a limit that counts
// in the same items as the code's, and no log line holds a user id.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"activities": {"create_post": {"limit": "20/1m", "tiers": {"premium": "40/1m"}}, "pin": {"mode": "off"}}}`,
		`{"activities": {"create_post": {"limit": "20/1h"}, "send_message": {"limit": "bucket 1/12h"}}}`,
		`{"activities": {"canary-user-4711": {"limit": "1/1m"}, "like": {"limit": "1/1m"}}}`,
		`{"activities": {"pin": {"limit": "a: log 3/12h, b: 10/1m"}, "ingest": {"limit": "sliding 1000000/1h"}}}`,
		`{"activities": {"update_member_role": {"limit": "reservoir 10/10s ahead 366d", "mode": "x"}}}`,
		`{"grants": [{"userId": "canary-user-4711", "role": "admin", "until": "2030-01-01T00:00:00Z", "reason": "x"}]}`,
		`{"grants": [{"userId": "canary-user-4711", "tier": "premium", "until": 5}]}`, `{"grants": [{"userid": "canary-user-4711"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		var log bytes.Buffer
		follower := &Follower{
			Source: &table{Stored: Stored{Version: 1, Document: document}},
			Guards: cricket.All, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		err := follower.Read(t.Context())
		if err != nil {
			log.WriteString(err.Error())
		}
		settings, broken := Parse(document)
		if (err != nil) != (broken != nil) {
			t.Fatalf("%q: the follower says %v, and Parse says %v", document, err, broken)
		}
		wantSharedLimits(t, document, follower.Limits())
		if broken != nil {
			return
		}
		for _, id := range userIDs(settings) {
			if strings.Count(string(document), id) == 1 && strings.Contains(log.String(), id) {
				t.Fatalf("%q: the log holds %q: %s", document, id, &log)
			}
			follower.Limits().Terms(Query{Activity: activityOf(t, "create_post"), UserID: id, At: time.UnixMilli(0)})
		}
		written, err := settings.Document()
		again, broken := Parse(written)
		if err != nil || broken != nil || !cmp.Equal(settings, again, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Settings{}, "Damaged")) || len(settings.Damaged.Problems) != len(again.Damaged.Problems) {
			t.Fatalf("%q is stored as %q, which reads as %+v (%v, %v), want %+v", document, written, again, err, broken, settings)
		}
	})
}

// wantSharedLimits checks the limits of every activity in the code.
func wantSharedLimits(t *testing.T, document []byte, now *Limits) {
	t.Helper()
	for _, g := range cricket.All {
		for _, code := range g.Activities {
			a, _ := now.Activity(code)
			if a.Unlimited != code.Unlimited || a.Limit.IsZero() != code.Limit.IsZero() {
				t.Fatalf("%q makes %s another kind of activity: %+v", document, code.Name, a)
			}
			for tier := range a.Tiers {
				if err := policy.CompatibleTiers(code.Limit, a.For(tier)); err != nil {
					t.Fatalf("%q: tier %q of %s: %v", document, tier, code.Name, err)
				}
			}
			if err := policy.CompatibleTiers(code.Limit, a.Limit); err != nil {
				t.Fatalf("%q: %s: %v", document, code.Name, err)
			}
		}
	}
}

// userIDs returns what can be a user's id: the users of grants, and the names of
// activities that the code does not have. Short ones occur in any text.
func userIDs(s Settings) (ids []string) {
	for _, g := range s.Grants {
		ids = append(ids, g.UserID)
	}
	for name := range s.Activities {
		if _, _, known := cricket.All.Activity(name); !known {
			ids = append(ids, name)
		}
	}
	long := ids[:0]
	for _, id := range ids {
		if len(id) >= 8 && !strings.Contains(everyLine, id) {
			long = append(long, id)
		}
	}
	return long
}

// everyLine holds the words of the lines that a follower logs.
const everyLine = `time= level=WARN msg="live limits not followed" not=read not=applied error="an override is of an activity or a group without a limit in the code"`
