package command

import (
	"regexp"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Each command knows lockouts: alone, in a group, and of subjects.
func TestLockoutsInCommands(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamotest.Endpoint(t))
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("TABLE_NAME", dynamotest.Table(t))
	page := []guards.Guard{{Name: "sign-in-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "enter_pin", Limit: "lockout 3/15m for 1m to 1d"},
		{Name: "sign_in", Limit: "lockout 5/15m for 30m", Subjects: []guards.Subject{{Name: "ip", Limit: "lockout 7/15m for 15m"}}},
		{Name: "change_mail", Group: "account", Limit: "try: lockout 4/15m for 30m"},
		{Name: "change_name", Group: "account", Limit: "try: lockout 4/15m for 30m, day: 20/1d"},
	}}}
	for _, step := range []struct {
		line   string
		status int
		want   string // a pattern for what is printed
	}{
		{"check enter_pin --user u1 --times 4", refused, `(?s)^1  allowed  1/3 used, 2 left\n2  allowed  2/3 used, 1 left\n3  allowed  3/3 used, 0 left, locked\n4  refused  3/3 used, locked  Too many\. \(wait (1 min|60 s)\)\n`},
		{"check enter_pin --user u1 --count 3 --store dynamodb", done, `3/3 used, 0 left, locked`},
		{"check enter_pin --user u1 --store dynamodb --json", refused, `"resetAt":\d+,"locked":true`},
		{"status --user u1", done, `(?m)^enter_pin +3/3 +0 +(1 min|59 s|\d+(\.\d+)? s)`},
		{"top --yes", done, `u1 .*3/3`},
		{"reset enter_pin --user u1 --yes", done, `enter_pin of u1: 0/3 used, 3 left`},
		{"check enter_pin --user u1 --store dynamodb", done, `1/3 used, 2 left`},
		{"limits history", done, `reset enter_pin of a user`},
		{"limits set enter_pin 5/15m", wrongUse, `did you mean "lockout 5/15m for 1m to 1d"\?`},
		{`limits set enter_pin "lockout 5/1h for 1m"`, wrongUse, `window of "lockout 5/1h for 1m" is 1h, want 15m`},
		{`limits set enter_pin "lockout 5/15m for 1m cost 2"`, wrongUse, `nothing would lock`},
		{`limits set enter_pin "lockout 5/15m for 1m"`, done, `limit lockout 3/15m for 1m to 1d -> lockout 5/15m for 1m`},
		{`limits set change_mail "try: lockout 9/15m for 30m"`, wrongUse, `change it for the whole group, as account.try`},
		{`limits set --group account try "lockout 3/15m for 30m"`, done, `account.try: limit lockout 4/15m for 30m -> lockout 3/15m for 30m`},
		{"verify enter_pin --store memory", done, `enter_pin: 3 of \d+ allowed, exactly the limit`},
		{"verify enter_pin --store dynamodb", done, `enter_pin: 5 of \d+ allowed, exactly the limit`},
		{"verify sign_in --store dynamodb", done, `sign_in: 7 of \d+ allowed`},
		{"verify change_mail --store dynamodb", done, `account`},
		{"limits", done, `enter_pin +lockout 3/15m for 1m to 1d`},
	} {
		status, out, log := command(t, page, step.line)
		if status != step.status || !regexp.MustCompile(step.want).MatchString(out+log) {
			t.Errorf("%s: status %d, want %d:\n%s%s\nwant %s", step.line, status, step.status, out, log, step.want)
		}
	}
}
