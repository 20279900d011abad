package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// content are the guards of a project with a group. A post takes 2 of what a comment
// takes 1 of. An export holds a slot of a log.
var content = limits.Guards{
	{Name: "posts-guard", Message: "Too many requests.", Activities: []limits.Activity{{
		Name: "create_post", Limit: policy.Must("posts: 10/1m, writes: 40/1h cost 2"), Group: "content",
		Tiers: limits.Tiers{"premium": policy.Must("posts: 20/1m, writes: 80/1h cost 2")},
	}}},
	{Name: "comments-guard", Message: "Too many requests.", Activities: []limits.Activity{
		{Name: "add_comment", Limit: policy.Must("writes: 40/1h"), Group: "content"},
		{Name: "like", Unlimited: true},
	}},
	{Name: "exports-guard", Message: "Three exports run already.", Activities: []limits.Activity{{
		Name: "export", Limit: policy.Must("log 3/10m"), Hold: true,
	}}},
}

// A project is a table and the guards of a project.
type project struct {
	t      *testing.T
	guards limits.Guards
	where  []string
	now    time.Time
}

// ofContent returns the project with these guards, and an empty table.
func ofContent(t *testing.T) *project {
	t.Helper()
	credentials(t)
	return &project{t, content, []string{"--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", dynamotest.Table(t)}, pinned}
}

// run runs a command on the table and answers a question with yes. A text in quotes is
// one argument.
func (p *project) run(command string) (status int, out, log string) {
	p.t.Helper()
	var printed, noted stream
	status = run(p.t.Context(), append(shellWords(command), p.where...), session{
		guards: p.guards, in: strings.NewReader("y\n"), out: &printed, err: &noted, now: func() time.Time { return p.now },
	})
	return status, strings.ReplaceAll(printed.String(), p.place(), "the table"), strings.ReplaceAll(noted.String(), p.place(), "the table")
}

// place is what commands say about where the table is.
func (p *project) place() string {
	return "the table " + p.where[5] + " in us-east-1 at " + p.where[3]
}

// prints runs a command, which must succeed and print this.
func (p *project) prints(command, want string) {
	p.t.Helper()
	status, out, log := p.run(command)
	if diff := cmp.Diff(want, out); status != done || diff != "" {
		p.t.Errorf("guards %s: status %d, %s (-want +got):\n%s", command, status, log, diff)
	}
}

// fails runs a command, which must fail with this message.
func (p *project) fails(command string, want int, message string) {
	p.t.Helper()
	if status, out, log := p.run(command); status != want || out != "" || !strings.Contains(log, message) {
		p.t.Errorf("guards %s: status %d, %q, %q, want %d, %q", command, status, out, log, want, message)
	}
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
	if _, out, _ := p.run("top --near 50 --json"); !strings.Contains(out, `"users":[{"userId":"u1","activity":"create_post","group":"content","name":"writes",`) {
		t.Error(out)
	}
	if _, _, log := p.run("reset add_comment --user u1"); !strings.HasPrefix(log, "Clear the group content (create_post, add_comment) of u1 in the table? [y/N] ") {
		t.Error(log)
	}
	p.prints("reset add_comment --user u1", "add_comment of u1: 0/40 used, 40 left, in the table; the group content (create_post, add_comment) is cleared\n")
	p.prints("reset export --user u1", "export of u1: 0/3 used, 3 left, in the table\n")
	p.prints("check create_post --user u1 --store dynamodb", "1  allowed   1/10 used,  9 left\n")
	p.prints("erase --user u1 --yes", "1 item of u1 found, 1 deleted, in the table\n")
	p.now = p.now.Add(2 * time.Hour)
	p.prints("cleanup --yes", "1 item of 1 user read, 1 stale, 1 deleted, in the table\n")
}

// A reservoir's places are given away, so nothing clears the group that has one.
func TestAGroupWithAReservoirCannotBeCleared(t *testing.T) {
	p := ofContent(t)
	p.guards = limits.Guards{{Name: "jobs-guard", Message: "m", Activities: []limits.Activity{
		{Name: "run_job", Limit: policy.Must("jobs: reservoir 10/10s ahead 1m"), Group: "work"},
		{Name: "ask", Limit: policy.Must("asks: 10/1m"), Group: "work"},
	}}}
	p.fails("reset ask --user u1", wrongUse, "ask can't be reset, because its places are given away")
}

// An unreadable item of a group is named with all of its activities.
func TestAnUnreadableItemOfAGroup(t *testing.T) {
	item := ratelimit.Item{Unread: []string{"writes_s"}}
	at := pinned
	lines := unreadable(content, "u1", map[ratelimit.Key]ratelimit.Item{{UserID: "u1", Activity: "content"}: item}, at)
	const want = "an item of the group content (create_post, add_comment) can't be read, so its figures mean nothing: writes_s has the wrong type; guards reset --user u1 create_post repairs it"
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("%q, want %q", lines, want)
	}
}
