package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// rooms are the guards of a project with subjects. A message counts for its room and, if
// it is named, for its tenant. A room has one export at a time. Posts and notes share what
// a room has.
var rooms = limits.Guards{
	{Name: "rooms-guard", Message: "Too many.", Activities: []limits.Activity{
		{Name: "write", Limit: policy.Must("3/1m"), Tiers: limits.Tiers{"pro": policy.Must("9/1m")}, Subjects: []limits.Subject{
			{Name: "room", Limit: policy.Must("4/1m"), Tiers: limits.Tiers{"pro": policy.Must("12/1m")}},
			{Name: "tenant", Limit: policy.Must("minute: 20/1m, day: 100/1d"), Tiers: limits.Tiers{"pro": policy.Must("minute: 40/1m, day: 400/1d")}, Optional: true},
		}},
		{Name: "export", Limit: policy.Must("9/1d"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("log 1/10m")}}},
	}},
	{Name: "posts-guard", Message: "Too many.", Activities: []limits.Activity{
		{Name: "post", Limit: policy.Must("posts: 10/1m"), Group: "content", Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("minute: 20/1m")}}},
		{Name: "note", Limit: policy.Must("notes: 10/1m"), Group: "content", Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("minute: 30/1m cost 2")}}},
		{Name: "plain", Limit: policy.Must("9/1m")},
	}},
}

// ofRooms returns the project with these guards, and an empty table.
func ofRooms(t *testing.T) *project {
	t.Helper()
	p := ofContent(t)
	p.guards = rooms
	return p
}

// refuses runs a command whose request is refused.
func (p *project) refuses(command, want string) {
	p.t.Helper()
	if status, out, log := p.run(command); status != refused || out != want {
		p.t.Errorf("guards %s: status %d, %q, %s, want %d, %q", command, status, out, log, refused, want)
	}
}

// A check names its subjects, on the embedded store and on a table.
func TestCheckNamesSubjects(t *testing.T) {
	p := ofRooms(t)
	p.prints("check write --user u1 --subject room=r42 --count 3 --store dynamodb", "1  allowed  3/3 used, 0 left, crossed 100 %\n")
	p.refuses("check write --user u2 --subject room=r42 --count 2 --store dynamodb", "1  refused  3/4 used of room  Too many. (wait 42 s)\n")
	p.refuses("check write --user u1 --subject tenant=acme --subject=room=r1 --store dynamodb", "1  refused  3/3 used of write  Too many. (wait 42 s)\n")
	p.prints("check write --user u3 --subject room=a=b --tier pro --store dynamodb", "1  allowed  1/9 used, 8 left\n")
	if status, out, _ := p.run("check write --user u4 --subject room=r9 --subject tenant=acme --store dynamodb --json"); status != done || !strings.Contains(out, `"limits":[{"name":"write",`) || !strings.Contains(out, `{"name":"tenant.day","limit":100,"activityCount":1,`) {
		t.Error(status, out)
	}
	for command, message := range map[string]string{
		"check write --user u1 --store dynamodb":                                                 "guards: --subject has no room, which write needs: give --subject room=ID\n",
		"check write --user u1 --subject tenant=t1 --store dynamodb":                             "guards: --subject has no room, which write needs: give --subject room=ID\n",
		"check write --user u1 --subject room=r1 --subject tenent=t1 --store dynamodb":           "guards: --subject is \"tenent\", did you mean \"tenant\"?\n",
		"check write --user u1 --subject room=r1 --subject house=t1 --store dynamodb":            "guards: --subject is \"house\", want a subject of write: room, tenant\n",
		"check plain --user u1 --subject room=r1 --store dynamodb":                               "guards: --subject is \"room\", and there is no subject of plain\n",
		"check write --user u1 --subject room --store dynamodb":                                  "guards: --subject: the value is \"room\", want a name and an id, such as room=r42\n",
		"check write --user u1 --subject room= --store dynamodb":                                 "want a name and an id, such as room=r42\n",
		"check write --user u1 --subject room=r1 --subject room=r2 --store dynamodb":             "guards: --subject: \"room\" is given twice, want one id\n",
		"check write --user u1 --subject room=" + strings.Repeat("x", 129) + " --store dynamodb": "want 1 to 128 characters, each ! to ~\n",
		"check write --user u1 --subject room=r1 --partial --store dynamodb":                     "guards: partial does not go with subjects",
	} {
		p.fails(command, wrongUse, message)
	}
}

// The embedded store counts for subjects, too.
func TestCheckNamesSubjectsInMemory(t *testing.T) {
	var out, log stream
	status := run(t.Context(), shellWords("check write --user u1 --subject room=r42 --times 4"), session{guards: rooms, out: &out, err: &log, now: atPinned})
	const want = "1  allowed  1/3 used, 2 left\n2  allowed  2/3 used, 1 left\n3  allowed  3/3 used, 0 left, crossed 100 %\n4  refused  3/3 used of write  Too many. (wait 42 s)\n"
	if status != refused || out.String() != want {
		t.Error(status, &out, &log)
	}
}

// Operators see and clear what a subject has.
func TestOperatorsSeeSubjects(t *testing.T) {
	p := ofRooms(t)
	for _, check := range []string{
		"write --user u1 --subject room=r42 --subject tenant=acme --count 2", "write --user u2 --subject room=r42", "write --user u2 --subject room=r43",
		"export --user u1 --subject room=r42", "note --user u1 --subject room=r42 --count 4",
	} {
		if status, _, log := p.run("check " + check + " --store dynamodb"); status != done {
			t.Fatal(check, log)
		}
	}
	p.prints("status --subject room=r42", `room=r42 in the table:
ACTIVITY      USED  LEFT  WAIT
write         3/4   1
export        1/1   0     10 min
post, minute  8/20  12
note, minute  4/15  11

SLOTS OF  COUNT  AT                        HELD UNTIL
export    1      2023-11-14T22:14:18.000Z  2023-11-14T22:24:18.000Z
`)
	p.prints("status --subject tenant=acme --tier pro", `tenant=acme in the table:
ACTIVITY       USED   LEFT  WAIT
write, minute  2/40   38
write, day     2/400  398
`)
	if _, out, _ := p.run("status --subject room=r43 --json"); !strings.Contains(out, "\"subject\": {\n    \"room\": \"r43\"\n  }") || strings.Contains(out, "userId") {
		t.Error(out)
	}
	if _, out, _ := p.run("status --user u1"); !strings.Contains(out, "write        2/3   1\n") {
		t.Error(out)
	}
	p.prints("reset --subject room=r42 write", "write of room=r42: 0/4 used, 4 left, in the table\n")
	p.prints("reset --user u1 write", "write of u1: 0/3 used, 3 left, in the table\n")
	p.prints("reset --subject room=r42 note --json", `{"subject":{"room":"r42"},"activity":"note","name":"minute","limit":15,"activityCount":0,"remaining":15,"waitTime":0,"resetAt":1700000100000}`+"\n")
	if _, _, log := p.run("release --subject room=r42 export"); !strings.Contains(log, "Only a slot of the log is freed: the other limits of export keep their counts. Free the slot of export that room=r42 has taken") {
		t.Error(log)
	}
	p.fails("release --subject room=r42 export", wrongUse, "guards: room=r42 has no open slot of export in the table")
	p.prints("status --subject room=r42", `room=r42 in the table:
ACTIVITY      USED  LEFT  WAIT
write         0/4   4
export        0/1   1
post, minute  0/20  20
note, minute  0/15  15
`)
	p.prints("erase --subject room=r43 --yes", "1 item of room=r43 found, 1 deleted, in the table\n")
	p.prints("erase --subject house=h1 --dry-run", "0 items of house=h1 found, none deleted because of --dry-run, in the table\n")
	if _, _, log := p.run("erase --subject tenant=acme"); !strings.HasPrefix(log, "Delete everything about tenant=acme in the table? [y/N] ") {
		t.Error(log)
	}
	for command, message := range map[string]string{
		"status --subject rom=r42":                     "guards: --subject is \"rom\", did you mean \"room\"?\n",
		"status --subject room=r1 --user u1":           "--user and --subject can't be used together",
		"status":                                       "missing flags: --user=ID or --subject=NAME=ID",
		"status --subject room=r1 --subject tenant=t1": "guards: --subject is given twice, want one subject\n",
		"reset --subject room=r42 plain":               "guards: --subject is \"room\", and there is no subject of plain\n",
		"reset --subject tenant=acme export":           "guards: --subject is \"tenant\", want a subject of export: room\n",
		"release --user u1 export":                     "guards: export has no slots of a user, because none of those limits is a log\n",
		"release --subject room=r42 write":             "guards: write has no slots of a room, because none of those limits is a log\n",
		"erase --subject room":                         "want a name and an id, such as room=r42",
	} {
		p.fails(command, wrongUse, message)
	}
}
