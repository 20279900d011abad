package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// Each row is a ValidationError that names the field. It never contains the
// user's id, and nothing is counted. The tests of package input have more values.
func TestBadInputIsAValidationError(t *testing.T) {
	user := canary
	for name, tt := range map[string]struct{ event, field, has string }{
		"no userId":                {`{"activity": "create_post"}`, "userId", "missing"},
		"empty userId":             {`{"userId": "", "activity": "create_post"}`, "userId", "empty"},
		"userId a number":          {`{"userId": 4711, "activity": "create_post"}`, "userId", "a number"},
		"129 characters":           {`{"userId": "` + strings.Repeat("u", 129) + `", "activity": "create_post"}`, "userId", "129"},
		"a space":                  {`{"userId": "canary-user 4711", "activity": "create_post"}`, "userId", "U+0020 as character 12"},
		"half of a surrogate pair": {`{"userId": "u\ud800", "activity": "create_post"}`, "userId", "JSON"},
		"USERID beside userId":     {`{"userId": "` + user + `", "USERID": "u2", "activity": "create_post"}`, "event", `"USERID"`},
		"userId repeated":          {`{"userId": "` + user + `", "userId": "u2", "activity": "create_post"}`, "userId", "repeated"},
		"no activity":              {`{"userId": "` + user + `"}`, "activity", "create_post"},
		"an unknown activity":      {`{"userId": "` + user + `", "activity": "add_comment"}`, "activity", "create_post, update_post, delete_post, like, view"},
		"an activity too long":     {`{"userId": "` + user + `", "activity": "` + strings.Repeat("a", 999) + `"}`, "activity", `aaa..."`},
		"count 0":                  {`{"userId": "` + user + `", "activity": "create_post", "count": 0}`, "count", "is 0, want a whole number of at least 1"},
		"count 1.5":                {`{"userId": "` + user + `", "activity": "create_post", "count": 1.5}`, "count", "is 1.5"},
		"count 11":                 {`{"userId": "` + user + `", "activity": "create_post", "count": 11}`, "count", "is 11, want at most 10"},
		"count 21, premium":        {`{"userId": "` + user + `", "activity": "create_post", "count": 21, "tier": "premium"}`, "count", "at most 20"},
		"status of 11":             {`{"userId": "` + user + `", "activity": "create_post", "count": 11, "op": "status"}`, "count", "at most 10"},
		"partial and requestId":    {`{"userId": "` + user + `", "activity": "create_post", "partial": true, "requestId": "r"}`, "partial", "requestId"},
		"roles of numbers":         {`{"userId": "` + user + `", "activity": "create_post", "roles": ["admin", 1]}`, "roles", "array of strings"},
		"requestId too long":       {`{"userId": "` + user + `", "activity": "create_post", "requestId": "` + strings.Repeat("r", 65) + `"}`, "requestId", "65"},
		"an empty op":              {`{"userId": "` + user + `", "activity": "create_post", "op": ""}`, "op", "empty"},
		"an unknown op":            {`{"userId": "` + user + `", "activity": "create_post", "op": "Check"}`, "op", "check, status, release, renew, reset"},
		"release of too many":      {`{"userId": "` + user + `", "activity": "create_post", "count": 1000001, "op": "release", "at": 1, "requestId": "r"}`, "count", "is 1000001, want 1 to 1000000 for a release"},
		"release without at":       {`{"userId": "` + user + `", "activity": "create_post", "op": "release", "requestId": "r"}`, "at", "missing"},
		"release without id":       {`{"userId": "` + user + `", "activity": "create_post", "op": "release", "at": 1}`, "requestId", "answer"},
		"release in year 10000":    {`{"userId": "` + user + `", "activity": "create_post", "op": "release", "requestId": "r", "at": 253402300800000}`, "at", "253402300800000"},
		"check with at":            {`{"userId": "` + user + `", "activity": "create_post", "at": 1}`, "at", "release"},
		"readyAt":                  {`{"userId": "` + user + `", "activity": "create_post", "op": "status", "readyAt": 60000}`, "readyAt", "check"},
		"job":                      {`{"userId": "` + user + `", "activity": "create_post", "job": {}}`, "job", "delayed queue"},
		"an unknown field":         {`{"userId": "` + user + `", "activity": "create_post", "teir": "premium"}`, "event", `"teir"`},
		"the event is an array":    {`[{"userId": "` + user + `"}]`, "event", "an array"},
		"an empty body":            {``, "event", "empty"},
		"two objects":              {`{"userId": "` + user + `", "activity": "create_post"} {}`, "event", "continues"},
		"a body of 70 KiB":         {`{"userId": "` + user + `", "tier": "` + strings.Repeat("t", 70<<10) + `"}`, "event", "71"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			out, err := b.Invoke(t.Context(), []byte(tt.event))
			e, ok := errors.AsType[*input.ValidationError](err)
			if !ok || e.Field != tt.field || !strings.HasPrefix(err.Error(), tt.field+" ") || !strings.Contains(err.Error(), tt.has) {
				t.Fatalf("%s, %v, want a ValidationError of %s that contains %s", out, err, tt.field, tt.has)
			}
			if strings.Contains(err.Error(), user) || len(err.Error()) > 300 {
				t.Errorf("the message has the user id or is too long: %v", err)
			}
			if b.store.asked != 0 || b.lines.Len() != 0 {
				t.Errorf("%d requests and metrics %s, want none", b.store.asked, &b.lines)
			}
		})
	}
}

// A user id has 1 to 128 characters, and every guard takes the longest ones. Ids
// that differ only in the last character are different users.
func TestAUserIdHasUpTo128Characters(t *testing.T) {
	for _, length := range []int{1, 128} {
		for _, g := range cricket.All {
			b := newBench(t)
			b.Guard = g
			activity := g.Activities[0].Name
			user := strings.Repeat("u", length-1) + "1"
			for _, user := range []string{user, user[:length-1] + "2"} {
				event := `{"userId": "` + user + `", "activity": "` + activity + `"}`
				out, err := b.Invoke(t.Context(), []byte(event))
				if err != nil {
					t.Fatalf("%s, %d characters: %v", activity, length, err)
				}
				if got := parse(t, out); got["userId"] != user || got["allowed"] != true || got["activityCount"] != 1.0 {
					t.Errorf("%s, %d characters: %s, want one counted for this user", activity, length, out)
				}
			}
		}
	}
}
