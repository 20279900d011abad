package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards"
)

// Each command knows lockouts: alone, in a group, and of subjects.
func TestLockoutsInCommands(t *testing.T) {
	page := []guards.Guard{{Name: "sign-in-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "enter_pin", Limit: "lockout 3/15m for 1m to 1d"},
		{Name: "sign_in", Limit: "lockout 5/15m for 30m", Subjects: []guards.Subject{{Name: "ip", Limit: "lockout 7/15m for 15m"}}},
		{Name: "change_mail", Group: "account", Limit: "try: lockout 4/15m for 30m"},
		{Name: "change_name", Group: "account", Limit: "try: lockout 4/15m for 30m, day: 20/1d"},
	}}}
	follow(t, page, []step{
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
	})
}

// busy are the guards of a project with prepaid limits: of calls, and of the room of a message.
// Reads and writes share an item, and only the reads are prepaid.
var busy = []guards.Guard{{Name: "api-guard", Message: "Too many.", Activities: []guards.Activity{
	{Name: "call", Limit: "200/1m prepaid", Tiers: guards.Tiers{"free": "150/1m"}},
	{Name: "say", Limit: "9/1m", Tiers: guards.Tiers{"pro": "900/1m"}, Subjects: []guards.Subject{{Name: "room", Limit: "300/1m prepaid"}}},
	{Name: "read", Limit: "api: 400/1m prepaid", Group: "content"},
	{Name: "write", Limit: "api: 200/1m", Group: "content"},
	{Name: "plain", Limit: "9/1m"},
}}}

// Commands that read the table show which counts can be leases.
func TestCommandsNameWhatIsPrepaid(t *testing.T) {
	p := ofContent(t)
	p.page = busy
	for _, check := range []string{"call --user u1 --count 180", "say --user u1 --subject room=r42 --count 8", "write --user u1 --count 180", "plain --user u1 --count 8"} {
		p.does("check " + check + " --store dynamodb")
	}
	p.prints("status --user u1", `u1 in the table:
ACTIVITY    USED             LEFT  WAIT
call        180/200 prepaid  20
say         8/9              1
read, api   180/400 prepaid  220
write, api  180/200 prepaid  20
plain       8/9              1

prepaid: instances can hold some of what is used, and have not handed it out yet
`)
	p.contains("status --user u1 --tier free", "\ncall        180/150          0     42 s\n")
	p.contains("status --subject room=r42", "\nsay       8/300 prepaid  292\n")
	if _, out, _ := p.run("status --user u1 --json"); strings.Count(out, `"prepaid": true`) != 3 {
		t.Errorf("status --json: %s", out)
	}
	p.prints("top --yes", `22:14:18 UTC: 4 at 80 % of a limit or more, among 5 items (0.5 read units), in the table
USER  ACTIVITY    USED             WAIT
u1    call        180/200 prepaid        [##############..] 90 %
u1    write, api  180/200 prepaid        [##############..] 90 %
u1    plain       8/9                    [##############..] 88 %
u1    say         8/9                    [##############..] 88 %

prepaid: instances can hold some of what is used, and have not handed it out yet
`)
	p.contains("top --yes --activity write --json", `"activity":"write","group":"content","prepaid":true,"name":"api",`)
	p.contains("stats", "\ncall                   1                prepaid\ncontent (read, write)  1                prepaid\nplain                  1\nsay                    1                prepaid\n",
		"\nprepaid: the metric Leased counts checks that were admitted from a lease, and Visits those that took one\n")
	p.lacks("stats --activity plain", "prepaid")
	p.contains("stats --json", `{"activity":"call","users":1,"prepaid":true}`, `{"activity":"plain","users":1}`)
}

// A live limit says prepaid itself. status and verify follow it.
func TestALivePrepaidLimit(t *testing.T) {
	p := ofContent(t)
	p.page = busy
	p.does("limits set call 190/1m --yes", "limits set plain \"300/1m prepaid\" --yes", "check call --user u1 --count 9 --store dynamodb", "check plain --user u1 --count 9 --store dynamodb")
	p.contains("status --user u1", "\ncall        9/190 ", "\nplain       9/300 prepaid ")
	p.contains("verify call --callers 5 --store dynamodb", " allowed, exactly the limit,")
	p.contains("verify plain --callers 5 --store dynamodb", " allowed, at most the limit of 300, as a prepaid one promises,")
}

// numbered are the guards of a project whose callers can give numbers for limits.
var numbered = []guards.Guard{{Name: "api-guard", Message: "Too many.", Activities: []guards.Activity{
	{
		Name: "call_api", Limit: "3/1h max 100", Tiers: guards.Tiers{"pro": "5/1h max 200"},
		Subjects: []guards.Subject{{Name: "tenant", Limit: "6/1h max 1000", Optional: true}},
	},
	{Name: "export", Limit: "log 2/1h max 9"},
	{Name: "send", Limit: "minute: bucket 4/1m burst 6 max 40, day: 50/1d"},
	{Name: "post", Group: "content", Limit: "writes: 8/1h max 90 cost 2"},
	{Name: "note", Group: "content", Limit: "writes: 8/1h max 90"},
	{Name: "plain", Limit: "9/1m"},
}}}

// Each command knows the numbers that callers give.
func TestNumbersInCommands(t *testing.T) {
	const (
		call   = "check call_api --user u1 --store dynamodb "
		wanted = `want a whole number from 0 to 1000000, or one for a limit by its name, such as tenant=500`
	)
	follow(t, numbered, []step{
		{call + "--count 3", done, `^1  allowed  3/3 used, 0 left, crossed 100 %\n$`},
		{call, refused, `^1  refused  3/3 used  Too many`},
		{call + "--limit 5", done, `^1  allowed  4/5 used, 1 left, crossed 80 %\n$`},
		{call + "--limit call_api=6 --limit tenant=7 --subject tenant=acme --json", done, `"limit":6,"activityCount":5,.*"name":"tenant","limit":7,"activityCount":1,`},
		{call + "--limit 200", done, `^1  allowed    6/100 used,  94 left`}, // a number above max counts as max
		{call + "--limit 0", refused, `^1  refused  the number for this limit is too low for the request  Too many\.\n$`},
		{call + "--limit 6 --count 7", refused, `the number for this limit is too low`},
		{call + "--limit tenant=0 --subject tenant=acme", refused, `^1  refused  the number for tenant is too low for the request  Too many\.\n$`},
		{call + "--limit tenant=7", refused, `6/3 used`},
		{call + "--limit tier=7", wrongUse, `limit has a number for an unknown limit or one without a max, want numbers only for: call_api, tenant`},
		{call + "--limit 20/1m", wrongUse, `^guards: --limit: the value is "20/1m", ` + wanted + "\nguards: a limit's text goes to guards limits set, or to guards replay to try it\n$"},
		{call + "--limit log", wrongUse, `^guards: --limit: the value is "log", ` + wanted + "\nguards: see guards check --help\n$"},
		{call + "--limit 1000001", wrongUse, wanted},
		{call + "--limit 5 --limit 6", wrongUse, `--limit: "6" is given beside another number, want one for each limit`},
		{call + "--limit tenant=5 --limit 6", wrongUse, `limit has an empty name`},
		{call + "--limit tenant=5 --limit tenant=6", wrongUse, `beside another number`},
		{"check plain --user u1 --limit 5", wrongUse, `limit goes only with activities whose limit has a max`},
		{"check send --user u1 --limit 5", wrongUse, `limit is a number, want an object of numbers by the names of limits: minute`},
		{"check send --user u1 --limit minute=20 --count 30", done, `30/30 used`},

		{"status --user u1", done, `(?s)call_api +6/3 +0 .*\n\n` + byText + "\n$"},
		{"status --user u1 --limit call_api=9", done, `(?s)call_api +6/9 +3\n.*export +0/2`},
		{"status --user u1 --limit 9", done, `(?s)call_api +6/9 +3\n.*export +0/9.*minute +0/6.*post, writes +0/4.*note, writes +0/9.*plain +0/9 +9\n$`},
		{"status --user u1 --limit writes=20 --json", done, `(?s)"activity": "post",\s+"group": "content",\s+"name": "writes",\s+"limit": 10,`},
		{"status --user u1 --json", done, `(?s)"activity": "export",\s+"max": true,`},
		{"status --subject tenant=acme", done, `(?s)call_api +1/6 +5.*` + byText + "\n"},
		{"status --subject tenant=acme --limit tenant=2", done, `call_api +1/2 +1\s+$`},
		{"status --user u1 --limit writes=1", done, `(?s)post +0/0 +0.*note, writes +0/1`},
		{"status --user u1 --limit tenant=2", wrongUse, `--limit is "tenant", want a limit with a max: call_api, export, minute, writes`},
		{"status --subject tenant=acme --limit 2", wrongUse, `--limit is "", want a limit with a max: tenant`},
		{"status --user u1 --limit exprt=2", wrongUse, `--limit is "exprt", did you mean "export"\?`},
		{"grant --user u1 --tier pro --until 7d --reason r", done, ``},
		{"status --user u1 --limit 9", done, `call_api +6/5 +0 .* +granted tier pro`}, // a granted tier wins over the number
		{"revoke --user u1", done, ``},
		{"top --yes", done, `(?s)u1 +call_api +6/3 .* 200 %\n\n` + byText + "\n"},
		{"top --yes --activity plain", done, `0 at 80 % .*\nguards: this reads [^\n]*\n$`},

		{"limits set call_api 4/1h", done, `call_api: limit 3/1h max 100 -> 4/1h max 100\n.*\n(?s:.*)guards: ` + upToMax + `\n$`},
		{`limits set call_api "4/1h max 4"`, done, `-> 4/1h max 4\n`},
		{call + "--limit 50", refused, `6/4 used`},
		{"limits set call_api 300/1h", done, `-> 300/1h max 300\n`},
		{"limits set call_api 6/1h --tier pro", done, `guards: ` + upToMax},
		{"limits set call_api 8/1h --subject tenant", done, `guards: ` + upToMax},
		{`limits set send "minute: bucket 2/1m, day: 40/1d"`, done, `guards: ` + upToMax},
		{"limits set --group content writes 9/1h", done, `-> 9/1h\n.*\nguards: ` + upToMax + `\n$`},
		{`limits set plain "9/1m max 20"`, wrongUse, `"9/1m max 20" has a max, but`},
		{"limits --live", done, `(?s)call_api +3/1h max 100 +300/1h max 300.*\n\n` + upToMax + "\n$"},
		{"limits unset call_api", done, ``},
		{"release export --user u1", wrongUse, `no open slot`},
		{"check export --user u1 --limit 9 --count 3 --store dynamodb", done, `3/9 used`},
		{"status --user u1", done, `(?s)export +3/2 +0.*SLOTS OF.*export +3 `},
		{"release export --user u1 --yes", done, `export of u1: 2/2 used, 0 left`},
		{"limits", done, `call_api +3/1h max 100 +pro: 5/1h max 200 +optional tenant 6/1h max 1000\n`},
		{"verify call_api", done, `call_api: 6 of \d+ allowed, exactly the lowest limit of a subject`},
		{"verify export", done, `export: 2 of \d+ allowed, exactly the limit`},
		{"verify send", done, `send: 6 of \d+ allowed, exactly the limit`},
		{"verify post", done, `content: \d+ of \d+ allowed, exactly the limits: writes 8/8`},
		{"verify export --store dynamodb", done, `export: 2 of \d+ allowed, exactly the limit`},
	})
}
