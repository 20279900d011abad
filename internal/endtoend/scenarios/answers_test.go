package scenarios_test

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// scenarios is the table.
var scenarios = slices.Concat(answers, releases, inRooms, outages, mistakes, lasting, passing, sources, beside)

const (
	check   = `{"call":"check","activity":"create_post"}`
	status  = `{"call":"status","activity":"create_post"}`
	saves   = `{"call":"guarded","activity":"create_post","save":"ok"}`
	fails   = `{"call":"guarded","activity":"create_post","save":"fail"}`
	tooMany = "Rate limit exceeded: Too many requests in a short period"
	fine    = `{"allowed":true,"reason":"ok","outage":null}`                             // an answer of the guard
	lost    = `{"allowed":true,"reason":"unavailable","outage":"{F} did not answer: *"}` // no answer, and onOutage is "allow"
)

// one returns a scenario with one step, which is a check unless it says otherwise.
func one(s scenario, only step) scenario {
	only.call = cmp.Or(only.call, check)
	s.steps = []step{only}
	return s
}

// In these scenarios the guard answers.
var answers = []scenario{
	{name: "allowed", invoke: true, url: true, counted: 1, steps: []step{
		{call: check, requests: 1, answer: `{"allowed":true,"reason":"ok","activity":"create_post","op":"check","limit":10,
			"activityCount":1,"remaining":9,"waitTime":0,"granted":1,"requestId":"*-*","message":null,"outage":null}`},
		{call: status, requests: 1, answer: `{"allowed":true,"reason":"ok","op":"status","activityCount":1,"granted":null,"at":null}`},
	}},
	{name: "refused", invoke: true, url: true, counted: 10, steps: []step{
		{before: `"count":10`, call: check, requests: 1, answer: `{"allowed":false,"reason":"limited","granted":0,"remaining":0,
			"message":"` + tooMany + `","at":null,"outage":null}`},
		{call: saves, requests: 1, class: "LimitedError", message: tooMany},
		{call: status, requests: 1, answer: `{"allowed":false,"reason":"limited"}`},
	}},
	{name: "refused by an error", invoke: true, noAgent: "an agent has no ON_LIMIT", options: map[string]any{"prefix": "strict-"}, counted: 10, steps: []step{
		{before: `"count":10`, call: check, requests: 1, answer: `{"allowed":false,"reason":"limited","granted":0,
			"activity":"create_post","op":"check","message":"` + tooMany + `","limit":null,"outage":null}`},
		{call: saves, requests: 1, class: "LimitedError", message: tooMany},
	}},
	{name: "partial", invoke: true, url: true, counted: 10, steps: []step{
		{call: `{"call":"check","activity":"create_post","args":{"count":12,"partial":true}}`, requests: 1,
			answer: `{"allowed":true,"reason":"ok","granted":10,"message":"` + tooMany + `"}`},
	}},
	{name: "crossed", invoke: true, url: true, counted: 10, steps: []step{
		{before: `"count":7`, call: `{"call":"check","activity":"create_post","args":{"requestId":"ID"}}`, requests: 1,
			answer: `{"activityCount":8,"crossed":80}`},
		{call: `{"call":"check","activity":"create_post","args":{"requestId":"ID"}}`, requests: 1, answer: `{"reason":"duplicate","crossed":null}`},
		{call: status, requests: 1, answer: `{"activityCount":8,"crossed":null}`},
		{call: check, requests: 1, answer: `{"activityCount":9,"crossed":null}`},
		{call: check, requests: 1, answer: `{"activityCount":10,"crossed":100}`},
		{call: check, requests: 1, answer: `{"allowed":false,"crossed":null}`},
	}},
	{name: "duplicate", invoke: true, url: true, counted: 1, steps: []step{
		{call: `{"call":"check","activity":"create_post","args":{"requestId":"ID"}}`, requests: 1, answer: `{"reason":"ok"}`},
		{call: `{"call":"check","activity":"create_post","args":{"requestId":"ID"}}`, requests: 1, answer: `{"allowed":true,"reason":"duplicate","granted":1,"at":null}`},
		{call: `{"call":"guarded","activity":"create_post","save":"fail","args":{"requestId":"ID"}}`, requests: 1, class: "SaveError", message: "*"},
	}},
	one(scenario{name: "a plan", invoke: true, counted: 15}, step{call: `{"call":"check","activity":"create_post","args":{"count":15,"tier":"premium"}}`, requests: 1, answer: `{"allowed":true,"limit":20,"granted":15}`}),
	{name: "a role that is never limited", invoke: true, counted: 0, steps: []step{
		{call: `{"call":"check","activity":"create_post","args":{"count":50,"roles":["admin"]}}`, requests: 1, answer: `{"allowed":true,"reason":"bypassed","granted":50,"limit":null}`},
		{call: `{"call":"guarded","activity":"create_post","save":"fail","args":{"roles":["admin"]}}`, requests: 1, class: "SaveError", message: "*"},
	}},
	one(scenario{name: "unlimited", invoke: true, counted: 0}, step{call: `{"call":"check","activity":"like"}`, requests: 1, answer: `{"allowed":true,"reason":"unlimited","granted":1,"limit":null,"remaining":null}`}),
	one(scenario{name: "ready", invoke: true, url: true, counted: 0}, step{call: `{"call":"ready","activity":"create_post"}`, requests: 1}),
	{name: "wrong requests", invoke: true, url: true, counted: 0, steps: []step{
		{call: `{"call":"check","activity":"create_post","args":{"count":11}}`, requests: 1, class: "ValidationError",
			message: "count is 11, want at most 10, the limit: waiting would never help, but partial grants what fits"},
		{call: `{"call":"guarded","save":"ok","activity":"create_post","args":{"count":11}}`, requests: 1, class: "ValidationError", message: "count is 11*"},
		{call: `{"call":"check","activity":"create_post","args":{"count":2,"partial":true,"requestId":"ID"}}`, requests: 1, class: "ValidationError",
			message: "partial does not go with requestId on a check*"},
		{call: `{"call":"check","activity":{"guard":"posts-guard","activity":"create_pots"}}`, requests: 1, class: "ValidationError", message: `activity is "create_pots", want one of posts-guard's*`},
		{call: `{"call":"check","activity":"create_pots"}`, requests: 0, class: "ValidationError", message: "no guard is known for the activity*"},
		{call: `{"call":"guarded","save":"ok","activity":"create_pots"}`, requests: 0, class: "ValidationError", message: "no guard is known for the activity*"},
	}},
}

// In these scenarios something that was counted is given back.
var releases = []scenario{
	{name: "a release counts once", invoke: true, url: true, counted: 2, steps: []step{
		{call: `{"call":"check","activity":"create_post","args":{"count":3}}`, requests: 1, answer: `{"granted":3,"activityCount":3}`},
		{call: `{"call":"check","activity":"create_post","args":{"count":4}}`, requests: 1, answer: `{"granted":4,"activityCount":7}`},
		{call: `{"call":"release","activity":"create_post","args":{"at":"$at","requestId":"$requestId","count":4}}`, requests: 1, answer: `{"allowed":true,"reason":"ok","activityCount":3}`},
		{call: `{"call":"release","activity":"create_post","args":{"at":1700000000000,"requestId":"ID"}}`, requests: 1, answer: `{"allowed":true,"reason":"ok","activityCount":3}`},
		{call: `{"call":"reset","activity":"create_post"}`, requests: 1, answer: `{"allowed":true,"op":"reset","activityCount":0}`},
		{call: `{"call":"check","activity":"create_post","args":{"count":2}}`, requests: 1, answer: `{"granted":2,"activityCount":2}`},
	}},
	{name: "a repeated release changes nothing", invoke: true, counted: 0, steps: []step{
		{before: `"count":1,"requestId":"other"`, call: `{"call":"check","activity":"create_post","args":{"requestId":"ID"}}`, requests: 1, answer: `{"granted":1,"activityCount":2}`},
		{faults: []fault{lose}, call: `{"call":"release","activity":"create_post","args":{"at":"$at","requestId":"ID"}}`, requests: 2, answer: `{"allowed":true,"activityCount":1}`},
		{call: `{"call":"reset","activity":"create_post"}`, requests: 1},
	}},
	{name: "a failed save", invoke: true, url: true, counted: 1, steps: []step{
		{call: saves, requests: 1, answer: `{"allowed":true}`},
		{call: fails, requests: 2, class: "SaveError", message: "*"},
		{call: `{"call":"guarded","activity":"create_post","save":"fail","args":{"count":5}}`, requests: 2, class: "SaveError", message: "*"},
		{call: `{"call":"guarded","activity":"create_post","save":"fail","args":{"count":12,"partial":true}}`, requests: 2, class: "SaveError", message: "*"},
	}},
	one(scenario{name: "a failed save whose release fails", invoke: true, counted: 1}, step{faults: []fault{nil, denied}, call: fails, requests: 2, class: "SaveError", message: "*"}),
}

// httpError is a shorter name.
func httpError(status int) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ func()) { http.Error(w, http.StatusText(status), status) }
}

// hasty options let a hanging request end soon.
var hasty = map[string]any{"timeout": 2_000, "decisionTimeout": 500}

// inHaste is how long a hasty call may take at most, on a busy machine.
const inHaste = 4 * time.Second

// forum is a guard whose activities count for a user and a room, and for a tenant if the
// event has one.
const forum = "./internal/endtoend/scenarios/testdata/forum-guard"

// The lists of an app that asks forum-guard: with the subjects that it has, from before
// it had any, and none.
var (
	withRooms    = map[string]any{"activities": listOf("room", "tenant?")}
	withoutRooms = map[string]any{"activities": listOf()}
	noList       = map[string]any{"activities": map[string]any{}}
)

func listOf(subjects ...string) map[string]any {
	list := map[string]any{}
	for _, activity := range []string{"write", "record", "note", "call"} {
		list[activity] = map[string]any{"guard": "forum-guard", "subjects": append([]string{}, subjects...)}
	}
	return list
}

const (
	write      = `{"call":"check","activity":"write","args":{"subjects":{"room":"ROOM"}}}`
	writeTwice = `{"call":"check","activity":"write","args":{"count":2,"subjects":{"room":"ROOM"}}}`
	writeHome  = `{"call":"check","activity":"write","args":{"subjects":{"room":"home-ROOM"}}}`
	seeRoom    = `{"call":"status","activity":"write","args":{"subjects":{"room":"ROOM"}}}`
	record     = `{"call":"slot","activity":"record","work":100,"args":{"subjects":{"room":"ROOM"}}}`
	tooManyNow = "Too many requests. Please try again later."
)

// In these scenarios an action counts in a room. The user may write 5 times a minute, and
// all users 3 times in one room.
var inRooms = []scenario{
	{name: "in a room", guard: "forum-guard", options: withRooms, invoke: true, url: true, counted: 3, steps: []step{
		{call: writeTwice, requests: 1, answer: `{"allowed":true,"reason":"ok","limit":3,"activityCount":2,"granted":2,"limitedBy":null,
			"limits":"[{\"activityCount\":2,\"limit\":5,\"name\":\"write\",*},{\"activityCount\":2,\"limit\":3,\"name\":\"room\",*}]"}`},
		{call: writeTwice, requests: 1, answer: `{"allowed":false,"reason":"limited","limitedBy":"room","granted":0,"message":"` + tooManyNow + `"}`},
		{call: write, requests: 1, answer: `{"allowed":true,"activityCount":3,"remaining":0}`},
		{call: write, requests: 1, answer: `{"allowed":false,"limitedBy":"room"}`},
		{call: `{"call":"guarded","activity":"write","save":"ok","args":{"subjects":{"room":"ROOM"}}}`, requests: 1, class: "LimitedError", message: tooManyNow},
		{call: seeRoom, requests: 1, answer: `{"allowed":false,"activityCount":3,"limitedBy":"room"}`},
	}},
	{name: "another room", guard: "forum-guard", options: withRooms, invoke: true, counted: 5, steps: []step{
		{call: `{"call":"check","activity":"write","args":{"count":3,"subjects":{"room":"ROOM"}}}`, requests: 1, answer: `{"allowed":true}`},
		{call: writeHome, requests: 1, answer: `{"allowed":true}`},
		{call: writeHome, requests: 1, answer: `{"allowed":true}`},
		{call: writeHome, requests: 1, answer: `{"allowed":false,"limitedBy":"write"}`},
	}},
	{name: "wrong subjects", guard: "forum-guard", options: withRooms, invoke: true, url: true, counted: 0, steps: []step{
		{call: `{"call":"check","activity":"write"}`, requests: 0, class: "ValidationError", message: `subjects has no room: the activity "write" needs room, tenant (optional)`},
		{call: `{"call":"check","activity":{"guard":"forum-guard","activity":"write"}}`, requests: 0, class: "ValidationError", message: `subjects has no room*`},
		{call: `{"call":"guarded","save":"ok","activity":"write","args":{"subjects":{"tenant":"ROOM"}}}`, requests: 0, class: "ValidationError", message: `subjects has no room*`},
		{call: `{"call":"slot","activity":"record"}`, requests: 0, class: "ValidationError", message: `subjects has no room*`},
		{call: `{"call":"check","activity":"write","args":{"subjects":{"room":"ROOM","ROOM":"r"}}}`, requests: 0, class: "ValidationError",
			message: `subjects has an unknown name: the activity "write" has room, tenant (optional)`},
		{call: `{"call":"check","activity":"write","args":{"partial":true,"subjects":{"room":"ROOM"}}}`, requests: 1, class: "ValidationError", message: "partial does not go with subjects*"},
		{call: `{"call":"check","activity":"write","args":{"count":4,"subjects":{"room":"ROOM"}}}`, requests: 1, class: "ValidationError", message: "count is 4, want at most 3, the limit of room*"},
	}},
	{name: "a list that knows no subjects", guard: "forum-guard", options: withoutRooms, invoke: true, counted: 0, steps: []step{
		{call: write, requests: 0, class: "ValidationError",
			message: `subjects does not go with the activity "write": the list has none for it. Write the list again with guards generate if it is old.`},
		{call: `{"call":"check","activity":"write"}`, requests: 1, class: "ValidationError", message: "subjects has no room*"},
	}},
	{name: "subjects without a list", guard: "forum-guard", options: noList, invoke: true, counted: 1, steps: []step{
		{call: `{"call":"check","activity":{"guard":"forum-guard","activity":"write"},"args":{"subjects":{"room":"ROOM"}}}`, requests: 1, answer: `{"allowed":true,"limit":3}`},
		{call: `{"call":"check","activity":{"guard":"forum-guard","activity":"write"}}`, requests: 1, class: "ValidationError", message: "subjects has no room*"},
		{call: `{"call":"check","activity":{"guard":"forum-guard","activity":"write"},"args":{"subjects":{"room":"ROOM","house":"h"}}}`, requests: 1, class: "ValidationError", message: "subjects has an unknown name*"},
	}},
	{name: "a subject that may be left out", guard: "forum-guard", options: withRooms, invoke: true, counted: 2, steps: []step{
		{call: write, requests: 1, answer: `{"allowed":true,"limits":"[*\"write\"*\"room\"*]"}`},
		{call: `{"call":"check","activity":"write","args":{"subjects":{"room":"ROOM","tenant":"ROOM"}}}`, requests: 1,
			answer: `{"allowed":true,"limits":"[*\"write\"*\"room\"*\"tenant.minute\"*\"tenant.day\"*]"}`},
	}},
	{name: "a release in a room", guard: "forum-guard", options: withRooms, invoke: true, url: true, counted: 0, steps: []step{
		{call: writeTwice, requests: 1, answer: `{"granted":2,"activityCount":2}`},
		{call: `{"call":"release","activity":"write","args":{"at":"$at","requestId":"$requestId","count":2,"subjects":{"room":"ROOM"}}}`, requests: 1, answer: `{"allowed":true,"activityCount":0}`},
		{call: `{"call":"guarded","activity":"write","save":"fail","args":{"count":3,"subjects":{"room":"ROOM"}}}`, requests: 2, class: "SaveError", message: "*"},
		{call: seeRoom, requests: 1, answer: `{"allowed":true,"activityCount":0}`},
		{call: `{"call":"settle","activity":"write","used":1,"args":{"count":3,"subjects":{"room":"ROOM"}}}`, requests: -1, answer: `{"granted":3}`},
		{call: seeRoom, requests: 1, answer: `{"activityCount":1,"limit":3}`},
		{call: `{"call":"reset","activity":"write"}`, requests: 1, answer: `{"allowed":true,"activityCount":0,"limit":5}`},
		{call: seeRoom, requests: 1, answer: `{"activityCount":1,"limit":3}`},
	}},
	{name: "a lost answer in a room", guard: "forum-guard", options: withRooms, invoke: true, url: true, counted: 1, steps: []step{
		{faults: []fault{lose}, call: write, requests: 2, answer: `{"allowed":true}`},
		{call: seeRoom, requests: 1, answer: `{"activityCount":1,"limit":3}`},
	}},
	{name: "ready with rooms", guard: "forum-guard", options: withRooms, invoke: true, counted: 0, steps: []step{
		{call: `{"call":"ready"}`, requests: 1},
		{call: `{"call":"ready","activity":"record"}`, requests: 1},
	}},
	{name: "a slot of a room", guard: "forum-guard", options: withRooms, invoke: true, counted: 1, steps: []step{
		{call: record, requests: 2, answer: `{"allowed":true,"reason":"ok","lost":false}`},
		{call: record, requests: 2, answer: `{"allowed":true,"reason":"ok","lost":false}`},
		{call: `{"call":"check","activity":"record","args":{"subjects":{"room":"ROOM"}}}`, requests: 1, answer: `{"allowed":true}`},
		{call: record, requests: 1, answer: `{"allowed":false,"reason":"limited","limitedBy":"room"}`},
		{call: `{"call":"slot","activity":"record","work":100,"args":{"subjects":{"room":"home-ROOM"}}}`, requests: 2, answer: `{"allowed":true}`},
	}},
}
