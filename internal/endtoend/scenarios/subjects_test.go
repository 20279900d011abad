package scenarios_test

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
