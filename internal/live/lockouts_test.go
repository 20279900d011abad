package live_test

import (
	"log/slog"
	"testing"

	. "github.com/cric-talk/guards/internal/live"
)

// In a group, a lock of one activity is a lock of all. So a live lockout is the group's: an
// activity's own live limit has the lockout that its group has now. A tier that the code does
// not have goes by the group's ordinary one.
func TestALiveLockoutIsTheGroups(t *testing.T) {
	guards := grouped(t, "posts: 10/1m, try: lockout 5/15m for 30m", "try: lockout 5/15m for 30m")
	table := &table{}
	f := &Follower{Source: table, Guards: guards, Log: slog.New(slog.DiscardHandler)}
	const code = "posts: 10/1m, try: lockout 5/15m for 30m; posts: 10/1m, try: lockout 5/15m for 30m; try: lockout 5/15m for 30m"
	for _, step := range []struct{ overrides, want string }{
		{`{"create_post": {"limit": "posts: 9/1m, try: lockout 4/15m for 30m"}}`, code},
		{
			`{"create_post": {"limit": "posts: 9/1m, try: lockout 5/15m for 30m"}}`,
			"posts: 9/1m, try: lockout 5/15m for 30m; posts: 10/1m, try: lockout 5/15m for 30m; try: lockout 5/15m for 30m",
		},
		{`{}`, code},
		{
			`{"content.try": {"limit": "lockout 4/15m for 30m"}}`,
			"posts: 10/1m, try: lockout 4/15m for 30m; posts: 10/1m, try: lockout 5/15m for 30m; try: lockout 4/15m for 30m",
		},
		{
			`{"content.try": {"limit": "lockout 4/15m for 30m"}, "create_post": {"limit": "posts: 9/1m, try: lockout 4/15m for 30m"}}`,
			"posts: 9/1m, try: lockout 4/15m for 30m; posts: 10/1m, try: lockout 5/15m for 30m; try: lockout 4/15m for 30m",
		},
	} {
		table.put(step.overrides)
		_ = f.Read(t.Context())
		if got := inGroup(f, guards); got != step.want {
			t.Errorf("%s:\n got %s\nwant %s", step.overrides, got, step.want)
		}
	}
	all := map[string]Override{"content.try": {Limit: "lockout 4/15m for 30m"}, "add_comment": {Tiers: map[string]string{"premium": "try: lockout 4/15m for 30m"}}}
	if _, problems := (Settings{Activities: all}).Limits(guards, nil); len(problems) > 0 {
		t.Errorf("the tier has the group's lockout: %v", problems)
	}
}
