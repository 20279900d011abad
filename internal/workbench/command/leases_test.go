package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards"
)

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
	if _, out, _ := p.run("stats --activity plain"); strings.Contains(out, "prepaid") {
		t.Errorf("stats of an ordinary limit: %s", out)
	}
	p.contains("stats --json", `{"activity":"call","users":1,"prepaid":true}`, `{"activity":"plain","users":1}`)
}

// A live limit says prepaid itself. status follows it.
func TestALivePrepaidLimit(t *testing.T) {
	p := ofContent(t)
	p.page = busy
	p.does("limits set call 190/1m --yes", "limits set plain \"300/1m prepaid\" --yes", "check call --user u1 --count 9 --store dynamodb", "check plain --user u1 --count 9 --store dynamodb")
	p.contains("status --user u1", "\ncall        9/190 ", "\nplain       9/300 prepaid ")
}
