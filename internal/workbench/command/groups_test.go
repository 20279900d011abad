package command

import (
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
)

// content are the guards of a project with a group. A post takes 2 of what a comment
// takes 1 of. An export holds a slot of a log.
var content = []guards.Guard{
	{Name: "posts-guard", Message: "Too many requests.", Activities: []guards.Activity{{
		Name: "create_post", Limit: "posts: 10/1m, writes: 40/1h cost 2", Group: "content",
		Tiers: guards.Tiers{"premium": "posts: 20/1m, writes: 80/1h cost 2"},
	}}},
	{Name: "comments-guard", Message: "Too many requests.", Activities: []guards.Activity{{
		Name: "add_comment", Limit: "writes: 40/1h", Group: "content",
	}}},
	{Name: "exports-guard", Message: "Three exports run already.", Activities: []guards.Activity{{
		Name: "export", Limit: "log 3/10m", Hold: true,
	}}},
}

// Activities of a group count in one item. Each command shows the figures in actions
// of the activity that it names.
func TestCommandsKnowGroups(t *testing.T) {
	p := ofContent(t)
	p.prints("check create_post --user u1 --count 4 --store dynamodb", "1  allowed   4/10 used,  6 left\n")
	p.prints("check add_comment --user u1 --count 20 --store dynamodb", "1  allowed  28/40 used, 12 left\n")
	p.prints("check add_comment --user u2 --store dynamodb", "1  allowed   1/40 used, 39 left\n")
	p.prints("status --user u1", `u1 in the table:
ACTIVITY             USED   LEFT  WAIT
create_post, posts   4/10   6
create_post, writes  14/20  6
add_comment, writes  28/40  12
export               0/3    3
`)
	p.prints("stats", `2 items of 2 users, 0 stale, in the table

ACTIVITY                            USERS  INTERVAL
content (create_post, add_comment)  2
`)
	p.prints("stats --activity add_comment --json", `{"table":"`+p.where[5]+`","region":"us-east-1","trackedUsers":2,"items":2,"stale":0,`+
		`"activities":[{"activity":"content","group":["create_post","add_comment"],"users":2}]}`+"\n")
	p.prints("stats --activity export", "2 items of 2 users, 0 stale, in the table\n")
	p.prints("top --near 50", `22:14:18 UTC: 1 at 50 % of a limit or more, among 2 items (1 read unit), in the table
USER  ACTIVITY             USED   WAIT
u1    create_post, writes  14/20        [###########.....] 70 %
`)
	p.prints("top --near 50 --activity add_comment", `22:14:18 UTC: 1 at 50 % of a limit or more, among 2 items (1 read unit), in the table
USER  ACTIVITY             USED   WAIT
u1    add_comment, writes  28/40        [###########.....] 70 %
`)
	if _, out, _ := p.run("status --user u1 --json"); !strings.Contains(strings.Join(strings.Fields(out), ""), `"name":"writes","limit":20,"activityCount":14,"remaining":6,"waitTime":0,"resetAt":1700002800000,"limits":[{"name":"posts","limit":10,`) {
		t.Error(out)
	}
	p.contains("top --near 50 --json", `"users":[{"userId":"u1","activity":"create_post","group":"content","name":"writes",`)
	p.notes("reset add_comment --user u1", "Clear the group content (create_post, add_comment) of u1 in the table? [y/N] ")
	p.prints("reset add_comment --user u1", "add_comment of u1: 0/40 used, 40 left, in the table; the group content (create_post, add_comment) is cleared\n")
	p.prints("reset export --user u1", "export of u1: 0/3 used, 3 left, in the table\n")
	p.prints("check create_post --user u1 --store dynamodb", "1  allowed   1/10 used,  9 left\n")
	p.prints("erase --user u1 --yes", "1 item of u1 found, 1 deleted, in the table\n")
	p.now = p.now.Add(2 * time.Hour)
	p.prints("cleanup --yes", "4 items of 1 user read, 1 stale, 1 deleted, in the table\n") // three tell of resets
}

// A reservoir's places are given away, so nothing clears the group that has one. An
// unreadable item of a group is named with all of its activities.
func TestWhatClearsAGroup(t *testing.T) {
	p := ofContent(t)
	p.put(map[string]string{"userId": "u1", "activityWindow": "content", "writes_s": "5"})
	p.notes("status --user u1", "guards: an item of the group content (create_post, add_comment) can't be read, so its figures mean nothing: writes_s has the wrong type; guards reset --user u1 create_post repairs it\n")
	p.page = []guards.Guard{{Name: "jobs-guard", Message: "m", Activities: []guards.Activity{
		{Name: "run_job", Limit: "jobs: reservoir 10/10s ahead 1m", Group: "work"},
		{Name: "ask", Limit: "asks: 10/1m", Group: "work"},
	}}}
	p.fails("reset ask --user u1", wrongUse, "ask can't be reset, because its places are given away")
}

// A live limit of a group changes the number of that name in each activity, and diff
// and history show one line.
func TestLiveLimitsOfAGroup(t *testing.T) {
	p := ofContent(t)
	p.prints("limits", `FUNCTION        ACTIVITY     LIMIT                               TIERS                                        GROUP    HOLD
posts-guard     create_post  posts: 10/1m, writes: 40/1h cost 2  premium: posts: 20/1m, writes: 80/1h cost 2  content
comments-guard  add_comment  writes: 40/1h                                                                    content
exports-guard   export       log 3/10m                                                                                 15 min
`)
	p.contains("limits --json", `"group": "content"`, `"hold": true`)
	p.prints("limits set --group content writes 60/1h --by alice", "content.writes: limit 40/1h cost 2 or 40/1h -> 60/1h\nin the table; instances follow within 30 s of use\n")
	p.prints("limits set --group content --tier premium writes 90/1h --by bob --json", `{"what":"set content.writes 90/1h for tier premium",`+
		`"changes":[{"activity":"content.writes","tier":"premium","of":"limit","old":"80/1h cost 2","new":"90/1h"}],`+
		`"at":"2023-11-14T22:14:18Z","by":"bob","table":"`+p.where[5]+`","region":"us-east-1"}`+"\n")
	p.prints("check add_comment --user u1 --count 50 --store dynamodb", "1  allowed  50/60 used, 10 left, crossed 80 %\n")
	p.prints("status --user u1", `u1 in the table:
ACTIVITY             USED   LEFT  WAIT  DECIDED BY
create_post, posts   0/10   10          live limit posts: 10/1m, writes: 60/1h cost 2 (code: posts: 10/1m, writes: 40/1h cost 2)
create_post, writes  25/30  5           live limit posts: 10/1m, writes: 60/1h cost 2 (code: posts: 10/1m, writes: 40/1h cost 2)
add_comment, writes  50/60  10          live limit writes: 60/1h (code: writes: 40/1h)
export               0/3    3
`)
	p.prints("limits diff", `ACTIVITY        TIER     CODE                   LIVE   MODE
content.writes           40/1h cost 2 or 40/1h  60/1h
content.writes  premium  80/1h cost 2           90/1h
`)
	p.prints("limits history", `VERSION  AT                    BY     WHAT                                       WHY
2        2023-11-14T22:14:18Z  bob    set content.writes 90/1h for tier premium
1        2023-11-14T22:14:18Z  alice  set content.writes 60/1h
`)
	p.contains("limits set add_comment \"writes: 50/1h\" --by carol", "add_comment: limit writes: 60/1h -> writes: 50/1h\n")
	p.prints("limits --live", `in force in the table:
ACTIVITY     TIER     CODE                                IN FORCE                            MODE  SINCE                 BY
create_post           posts: 10/1m, writes: 40/1h cost 2  posts: 10/1m, writes: 60/1h cost 2        2023-11-14T22:14:18Z  alice
create_post  premium  posts: 20/1m, writes: 80/1h cost 2  posts: 20/1m, writes: 90/1h cost 2        2023-11-14T22:14:18Z  bob
add_comment           writes: 40/1h                       writes: 50/1h                             2023-11-14T22:14:18Z  carol
export                log 3/10m                           log 3/10m
`)
	p.notes("limits set --group content writes 70/1h", "guards: add_comment keeps its own live limit, writes: 50/1h\n"+
		"guards: create_post, tier premium keeps posts: 20/1m, writes: 90/1h cost 2\n")
	p.prints("limits unset --group content writes --tier premium --by bob", "content.writes, tier premium: limit 90/1h -> 80/1h cost 2\nin the table; instances follow within 30 s of use\n")
	p.prints("limits unset --group content writes", "content.writes: limit 70/1h -> 40/1h cost 2 or 40/1h\nin the table; instances follow within 30 s of use\n")
	p.wrong(map[string]string{
		"limits set --group contnt writes 60/1h":                      "guards: --group is \"contnt\", did you mean \"content\"?\nguards: see guards limits\n",
		"limits set --group content write 60/1h":                      `guards: limit is "write", did you mean "writes"?`,
		"limits set --group content writes 60/1h --tier premum":       `guards: --tier is "premum", did you mean "premium"?`,
		"limits set --group content writes 60/1h --tier gold --force": "guards: --force goes without --group",
		"limits set --group content writes --mode off":                "guards: a mode holds for an activity",
		"limits set --group content writes 60/1d":                     `window of limit "writes" of`,
		"limits set --group content writes \"60/1h cost 3\"":          `cost of limit "writes" of`,
		"limits set content 60/1h":                                    `guards: activity is "content", want an activity of this group: create_post, add_comment`,
		"limits set create_post 60/1h":                                "create_post: a live limit keeps",
		"limits unset --group content wrtes":                          `guards: limit is "wrtes", did you mean "writes"?`,
		"limits unset --group content writes":                         "guards: content.writes has no live limit to undo",
	})
}
