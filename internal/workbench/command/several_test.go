package command

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// texting returns the item of a user who has sent so many texts, one every 12 s,
// the last one now, and the guards of a project that has only this activity.
func texting(t *testing.T, limit string, texts int) (limits.Guards, ratelimit.Key, ratelimit.Item) {
	t.Helper()
	p := policy.Must(limit)
	guards := limits.Guards{{Name: "sms-guard", Activities: []limits.Activity{{Name: "send_text", Limit: p}}}}
	store := new(memstore.Store)
	for i := range texts {
		now := func() time.Time { return pinned.Add(time.Duration(i+1-texts) * 12 * time.Second) }
		l := &ratelimit.Limiter{Store: store, Now: now}
		d, err := l.Check(t.Context(), ratelimit.Request{UserID: "u1", Activity: "send_text", Policy: p, Count: 1, ID: strconv.Itoa(i)})
		if err != nil || !d.Allowed {
			t.Fatalf("text %d: %+v, %v", i, d, err)
		}
	}
	window, _ := p.Item(pinned.UnixMilli())
	key := ratelimit.Key{UserID: "u1", Activity: "send_text", Window: window}
	item, err := store.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return guards, key, item
}

// The limit with the fewest actions left need not be the one that is used most. At
// 22:14:18, the user has sent 2 of 5 texts since 22:14:00, and 26 of 30 since 22:00.
func TestTopShowsTheLimitThatIsUsedMost(t *testing.T) {
	const minute, hour = 1_700_000_100_000, 1_700_002_800_000
	for _, tt := range []struct {
		limit string
		texts int
		want  []ranked
	}{
		{"minute: 5/1m, hour: 30/1h", 26, []ranked{{whose{UserID: "u1"}, "send_text", "", false, "hour", 30, 26, 86, 0, hour}}},
		{"minute: 5/1m, hour: 30/1h", 20, []ranked{}},
		{"minute: 2/1m, hour: 2/1h", 2, []ranked{{whose{UserID: "u1"}, "send_text", "", false, "hour", 2, 2, 100, 2_742_000, hour}}},
		{"2/1m", 2, []ranked{{whose{UserID: "u1"}, "send_text", "", false, "", 2, 2, 100, 42_000, minute}}},
	} {
		guards, key, item := texting(t, tt.limit, tt.texts)
		r := ranking{guards: guards, counted: rankedActivities(guards, ""), At: pinned, Near: 80, Users: []ranked{}, rows: 20}
		r.add(key, item)
		if diff := cmp.Diff(tt.want, r.Users, cmp.AllowUnexported(ranked{})); diff != "" {
			t.Errorf("%d texts with %s (-want +got):\n%s", tt.texts, tt.limit, diff)
		}
	}
}

// status shows each of several limits, with the names that answers have.
func TestStatusShowsEachOfSeveralLimits(t *testing.T) {
	guards, key, item := texting(t, "minute: 5/1m, hour: 30/1h", 26)
	list := standings(guards, "u1", "", map[ratelimit.Key]ratelimit.Item{key: item}, nil, pinned)
	var text, json stream
	if err := statusTable(list).write(&text, 0); err != nil {
		t.Fatal(err)
	}
	if err := (session{out: &json}).printLine(list); err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][2]string{
		{text.String(), `ACTIVITY           USED   LEFT  WAIT
send_text, minute  2/5    3
send_text, hour    26/30  4
`},
		{json.String(), `[{"function":"sms-guard","activity":"send_text","name":"minute","limit":5,"activityCount":2,"remaining":3,"waitTime":0,"resetAt":1700000100000,` +
			`"limits":[{"name":"minute","limit":5,"activityCount":2,"remaining":3,"waitTime":0,"resetAt":1700000100000},` +
			`{"name":"hour","limit":30,"activityCount":26,"remaining":4,"waitTime":0,"resetAt":1700002800000}]}]` + "\n"},
	} {
		if diff := cmp.Diff(tt[1], tt[0]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
