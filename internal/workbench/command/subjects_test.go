package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards"
)

// rooms are the guards of a project with subjects. A message counts for its room and, if
// it is named, for its tenant. A room has one export at a time. Posts and notes share what
// a room has.
var rooms = []guards.Guard{
	{Name: "rooms-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "write", Limit: "3/1m", Tiers: guards.Tiers{"pro": "9/1m"}, Subjects: []guards.Subject{
			{Name: "room", Limit: "4/1m", Tiers: guards.Tiers{"pro": "12/1m"}},
			{Name: "tenant", Limit: "minute: 20/1m, day: 100/1d", Tiers: guards.Tiers{"pro": "minute: 40/1m, day: 400/1d"}, Optional: true},
		}},
		{Name: "export", Limit: "9/1d", Subjects: []guards.Subject{{Name: "room", Limit: "log 1/10m"}}},
	}},
	{Name: "posts-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "post", Limit: "posts: 10/1m", Group: "content", Subjects: []guards.Subject{{Name: "room", Limit: "minute: 20/1m"}}},
		{Name: "note", Limit: "notes: 10/1m", Group: "content", Subjects: []guards.Subject{{Name: "room", Limit: "minute: 30/1m cost 2"}}},
		{Name: "plain", Limit: "9/1m"},
	}},
}

// A check names its subjects, on the embedded store and on a table.
func TestCheckNamesSubjects(t *testing.T) {
	p := ofRooms(t)
	p.prints("check write --user u1 --subject room=r42 --count 3 --store dynamodb", "1  allowed  3/3 used, 0 left, crossed 100 %\n")
	p.refuses("check write --user u2 --subject room=r42 --count 2 --store dynamodb", "1  refused  3/4 used of room  Too many. (wait 42 s)\n")
	p.refuses("check write --user u1 --subject tenant=acme --subject=room=r1 --store dynamodb", "1  refused  3/3 used of write  Too many. (wait 42 s)\n")
	p.prints("check write --user u3 --subject room=a=b --tier pro --store dynamodb", "1  allowed  1/9 used, 8 left\n")
	p.contains("check write --user u4 --subject room=r9 --subject tenant=acme --store dynamodb --json", `"limits":[{"name":"write",`, `{"name":"tenant.day","limit":100,"activityCount":1,`)
	p.wrong(map[string]string{
		"check write --user u1 --store dynamodb":                                                 "guards: --subject has no room, which write needs: give --subject room=ID\n",
		"check write --user u1 --subject room=r1 --subject tenent=t1 --store dynamodb":           "guards: --subject is \"tenent\", did you mean \"tenant\"?\n",
		"check plain --user u1 --subject room=r1 --store dynamodb":                               "guards: --subject is \"room\", and there is no subject of plain\n",
		"check write --user u1 --subject room --store dynamodb":                                  "guards: --subject: the value is \"room\", want a name and an id, such as room=r42\n",
		"check write --user u1 --subject room=r1 --subject room=r2 --store dynamodb":             "guards: --subject: \"room\" is given twice, want one id\n",
		"check write --user u1 --subject room=" + strings.Repeat("x", 129) + " --store dynamodb": "want 1 to 128 characters, each ! to ~\n",
		"check write --user u1 --subject room=r1 --partial --store dynamodb":                     "guards: partial does not go with subjects",
	})
}

// Operators see and clear what a subject has.
func TestOperatorsSeeSubjects(t *testing.T) {
	p := ofRooms(t)
	for _, check := range []string{
		"write --user u1 --subject room=r42 --subject tenant=acme --count 2", "write --user u2 --subject room=r42", "write --user u2 --subject room=r43",
		"export --user u1 --subject room=r42", "note --user u1 --subject room=r42 --count 4",
	} {
		p.does("check " + check + " --store dynamodb")
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
	p.contains("status --subject room=r43 --json", "\"subject\": {\n    \"room\": \"r43\"\n  }")
	p.lacks("status --subject room=r43 --json", "userId")
	p.contains("status --user u1", "write        2/3   1\n")
	p.prints("stats", `9 items of 2 users and 3 subjects (room 2, tenant 1), 0 stale, in the table

ACTIVITY              USERS  INTERVAL
content (post, note)  1
export                1
write                 2

SUBJECT  COUNT
room     2
tenant   1
`)
	p.contains("stats --json", `"trackedUsers":2,"subjects":{"room":2,"tenant":1},"items":9,`)
	p.prints("top --near 60 --yes", `22:14:18 UTC: 4 at 60 % of a limit or more, among 9 items (1.5 read units), in the table
USER      ACTIVITY  USED  WAIT
room=r42  export    1/1   10 min  [################] 100 %
room=r42  write     3/4           [############....] 75 %
u1        write     2/3           [##########......] 66 %
u2        write     2/3           [##########......] 66 %
`)
	p.contains("top --near 99 --json", `"users":[{"subject":{"room":"r42"},"activity":"export",`)
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
	p.notes("erase --subject tenant=acme", "Delete everything about tenant=acme: items, grants and blocks in the table? [y/N] ")
	p.wrong(map[string]string{
		"status": "missing flags: --user=ID or --subject=NAME=ID",
		"status --subject room=r1 --subject tenant=t1": "guards: --subject is given twice, want one subject\n",
		"reset --subject room=r42 plain":               "guards: --subject is \"room\", and there is no subject of plain\n",
		"release --subject room=r42 write":             "guards: write has no slots of a room, because none of those limits is a log\n",
	})
}

// A subject can have a live limit, even in a group, and a tier can be granted to a
// subject. All commands about live limits show them.
func TestLiveLimitsOfSubjects(t *testing.T) {
	p := ofRooms(t)
	p.prints("limits", `FUNCTION     ACTIVITY  LIMIT         TIERS                                                                 SUBJECTS                                               GROUP
rooms-guard  write     3/1m          pro: 9/1m; room, pro: 12/1m; tenant, pro: minute: 40/1m, day: 400/1d  room 4/1m, optional tenant minute: 20/1m, day: 100/1d
rooms-guard  export    9/1d                                                                                room log 1/10m
posts-guard  post      posts: 10/1m                                                                        room minute: 20/1m                                     content
posts-guard  note      notes: 10/1m                                                                        room minute: 30/1m cost 2                              content
posts-guard  plain     9/1m
`)
	p.contains("limits --json", `"name": "tenant",`, `"optional": true`, `"policy": "log 1/10m",`)
	p.prints("limits set write --subject room 6/1m --by alice", "write/room: limit 4/1m -> 6/1m\nin the table; instances follow within 30 s of use\n")
	p.prints("limits set write --subject room --tier pro 20/1m --by bob --json", `{"what":"set write/room 20/1m for tier pro","changes":[{"activity":"write/room","tier":"pro","of":"limit","old":"12/1m","new":"20/1m"}],`+
		`"at":"2023-11-14T22:14:18Z","by":"bob","table":"`+p.where[5]+`","region":"us-east-1"}`+"\n")
	p.prints("limits set --group content --subject room minute 40/1m --by carol", "content.room.minute: limit 20/1m or 30/1m cost 2 -> 40/1m\nin the table; instances follow within 30 s of use\n")
	p.prints("grant --subject tenant=acme --tier pro --until 7d --reason trial --by dora", "tenant=acme has the tier pro until 2023-11-21T22:14:18Z\nin the table; instances follow within 30 s of use\n")
	p.prints("limits diff", `ACTIVITY             TIER  CODE                   LIVE                  MODE
content.room.minute        20/1m or 30/1m cost 2  40/1m
write/room                 4/1m                   6/1m
write/room           pro   12/1m                  20/1m
USER                 ROLE  TIER                   UNTIL                 REASON
tenant=acme                pro                    2023-11-21T22:14:18Z  trial
`)
	p.contains("limits diff --json", `"grants":[{"subject":{"tenant":"acme"},"tier":"pro","until":"2023-11-21T22:14:18Z","reason":"trial"}]`)
	p.prints("limits history", `VERSION  AT                    BY     WHAT                                           WHY
4        2023-11-14T22:14:18Z  dora   grant a tenant pro until 2023-11-21T22:14:18Z  trial
3        2023-11-14T22:14:18Z  carol  set content.room.minute 40/1m
2        2023-11-14T22:14:18Z  bob    set write/room 20/1m for tier pro
1        2023-11-14T22:14:18Z  alice  set write/room 6/1m
`)
	p.prints("limits --live", `in force in the table:
ACTIVITY      TIER  CODE                        IN FORCE                    MODE  SINCE                 BY
write               3/1m                        3/1m
write         pro   9/1m                        9/1m
write/room          4/1m                        6/1m                              2023-11-14T22:14:18Z  alice
write/room    pro   12/1m                       20/1m                             2023-11-14T22:14:18Z  bob
write/tenant        minute: 20/1m, day: 100/1d  minute: 20/1m, day: 100/1d
write/tenant  pro   minute: 40/1m, day: 400/1d  minute: 40/1m, day: 400/1d
export              9/1d                        9/1d
export/room         log 1/10m                   log 1/10m
post                posts: 10/1m                posts: 10/1m
post/room           minute: 20/1m               minute: 40/1m                     2023-11-14T22:14:18Z  carol
note                notes: 10/1m                notes: 10/1m
note/room           minute: 30/1m cost 2        minute: 40/1m cost 2              2023-11-14T22:14:18Z  carol
plain               9/1m                        9/1m

USER         ROLE  TIER  UNTIL                 SINCE                 BY    REASON
tenant=acme        pro   2023-11-21T22:14:18Z  2023-11-14T22:14:18Z  dora  trial
`)
	p.prints("status --subject tenant=acme", `tenant=acme in the table:
ACTIVITY       USED   LEFT  WAIT  DECIDED BY
write, minute  0/40   40          granted tier pro
write, day     0/400  400         granted tier pro
`)
	p.notes("check write --user u1 --subject room=r1 --subject tenant=acme --store dynamodb", "guards: write of room=r1 is decided by: live limit 6/1m (code: 4/1m); see guards limits --live\nguards: write of tenant=acme is decided by: granted tier pro; see guards limits --live\n")
	p.prints("revoke --subject tenant=acme", "tenant=acme no longer has the tier pro until 2023-11-21T22:14:18Z\nin the table; instances follow within 30 s of use\n")
	p.contains("limits history --json", `"what": "revoke a tenant's grants"`)
	p.lacks("limits history --json", "acme")
	p.prints("limits unset write --subject room --tier pro", "write/room, tier pro: limit 20/1m -> 12/1m\nin the table; instances follow within 30 s of use\n")
	p.prints("limits unset write --subject room", "write/room: limit 6/1m -> 4/1m\nin the table; instances follow within 30 s of use\n")
	p.prints("limits unset --group content --subject room minute", "content.room.minute: limit 40/1m -> 20/1m or 30/1m cost 2\nin the table; instances follow within 30 s of use\n")
	p.wrong(map[string]string{
		"limits set write --subject rom 5/1m":                                    "guards: --subject is \"rom\", did you mean \"room\"?\n",
		"limits set write --subject room 5/1h":                                   "guards: write/room: a live limit keeps the kind, the window and the cost",
		"limits set write --subject room --tier gold 5/1m":                       "guards: --tier is \"gold\", want a tier of write for room: pro\n",
		"limits set write --subject room --mode off":                             "guards: a mode holds for the whole activity",
		"limits set --group content --subject rooom minute 5/1m":                 "guards: --subject is \"rooom\", did you mean \"room\"?\n",
		"limits unset write --subject room":                                      "guards: write/room has no live limit to undo\n",
		"grant --subject tenant=acme --role admin --until 7d --reason r":         "guards: a grant to a subject needs a tier",
		"grant --subject tenant=acme --tier premium --until 7d --reason r":       "guards: --tier is \"premium\", want a tier tenant: pro\n",
		"grant --subject tenant=acme --user u1 --tier pro --until 7d --reason r": "--user and --subject can't be used together",
		"revoke --subject tenant=acme":                                           "guards: nothing is granted to tenant=acme in the table\n",
	})
	// An erasure takes back what is granted.
	p.does("grant --subject tenant=acme --tier pro --until 7d --reason trial")
	p.prints("erase --subject tenant=acme --yes", "1 item and 1 grant of tenant=acme found, 2 deleted, in the table\n")
	p.prints("limits diff", "nothing differs from the code\n")
	p.notes("limits set write 2/1m", "guards: write, tier pro keeps 9/1m; write/room keeps 4/1m; write/room, tier pro keeps 12/1m; "+
		"write/tenant keeps minute: 20/1m, day: 100/1d; write/tenant, tier pro keeps minute: 40/1m, day: 400/1d\n")
}

// Operators block a subject, and the error for an activity that does not name it lists
// those that do.
func TestASubjectIsBlocked(t *testing.T) {
	p := ofRooms(t)
	p.prints("block --subject room=r42 --activity write --until 1h --reason spam --by op",
		"room=r42 is blocked from write until 2023-11-14T23:14:18Z\nin the table; instances follow within 30 s of use\n")
	p.refuses("check write --user u1 --subject room=r42 --store dynamodb",
		"1  refused  room blocked until 2023-11-14T23:14:18Z  You can't do this at the moment.\n")
	p.does("check export --user u1 --subject room=r42 --store dynamodb", "check write --user u1 --subject room=r1 --store dynamodb")
	p.contains("status --subject room=r42", "room=r42  write     2023-11-14T23:14:18Z")
	p.contains("limits history", "block a room from write until 2023-11-14T23:14:18Z")
	p.fails("block --subject room=r42 --activity plain --until 1h --reason spam", wrongUse,
		"guards: --activity is \"plain\", want one that names a room: write, export, post, note\n")
	p.fails("block --subject planet=p1 --until 1h --reason spam", wrongUse, "--subject is \"planet\"")
	p.prints("unblock --subject room=r42 --by op", "room=r42 is no longer blocked from write\nin the table; instances follow within 30 s of use\n")
	p.does("check write --user u2 --subject room=r42 --store dynamodb")
}
