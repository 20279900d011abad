package scenarios_test

import (
	"net/http"
	"time"
)

// In these scenarios the guard does not answer, or not at first.
var outages = []scenario{
	{name: "unavailable, allow", invoke: true, url: true, options: map[string]any{"prefix": "deny-"}, steps: []step{
		{call: check, requests: 1, answer: `{"allowed":true,"reason":"unavailable","op":"check","activity":"create_post","granted":1,"message":null,
			"limit":null,"at":null,"outage":"{F} did not answer: *"}`},
		{call: fails, requests: 1, class: "SaveError", message: "*"},
	}},
	{name: "unavailable, deny", invoke: true, url: true, options: map[string]any{"prefix": "deny-", "onOutage": "deny"}, steps: []step{
		{call: check, requests: 1, answer: `{"allowed":false,"reason":"unavailable","op":"check","granted":0,"message":"Please try again later.",
			"outage":"{F} did not answer: *"}`},
		{call: saves, requests: 1, class: "LimitedError", message: "Please try again later."},
	}},
	{name: "unavailable, other verbs", invoke: true, url: true, options: map[string]any{"prefix": "deny-"}, steps: []step{
		{call: status, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{call: `{"call":"ready","activity":"create_post"}`, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{call: `{"call":"reset","activity":"create_post"}`, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{call: `{"call":"release","activity":"create_post","args":{"at":1700000000000,"requestId":"ID"}}`, requests: 1,
			class: "OutageError", message: "{F} did not answer: *"},
	}},
	{name: "the guard decides alone", invoke: true, url: true, options: map[string]any{"prefix": "alone-"}, steps: []step{
		{call: `{"call":"check","activity":"create_post","args":{"count":10}}`, requests: 1, answer: `{"allowed":true,"reason":"unavailable","granted":10,"limit":10,"outage":null}`},
		{call: check, requests: 1, answer: `{"allowed":false,"reason":"unavailable","granted":0,"message":"` + tooMany + `","outage":null}`},
	}},
	one(scenario{name: "throttled once", invoke: true, url: true, noAgent: ofLambda, counted: 1}, step{faults: times(1, throttle), requests: 2, answer: fine}),
	one(scenario{name: "throttled", invoke: true, url: true, noAgent: ofLambda}, step{faults: times(3, throttle), requests: 3, answer: lost}),
	one(scenario{name: "5xx once", invoke: true, url: true, noAgent: ofLambda, counted: 1}, step{faults: []fault{unavailable, failure}, requests: 3, answer: fine}),
	one(scenario{name: "5xx", invoke: true, url: true, noAgent: ofLambda, options: map[string]any{"onOutage": "deny", "maxTries": 2}}, step{faults: times(2, unavailable), requests: 2, answer: `{"allowed":false,"reason":"unavailable","outage":"{F} did not answer: *"}`}),
	one(scenario{name: "502 of a proxy", invoke: true, noAgent: noProxy}, step{faults: times(3, httpError(http.StatusBadGateway)), requests: 3, answer: lost}),
	one(scenario{name: "5xx of a proxy", invoke: true, url: true, noAgent: noProxy}, step{faults: times(3, httpError(http.StatusGatewayTimeout)), requests: 3, answer: lost}),
	one(scenario{name: "reset connection", invoke: true, url: true, counted: 1}, step{faults: times(1, reset), requests: 2, answer: fine}),
	one(scenario{name: "an answer cut short", invoke: true, url: true, counted: 1}, step{faults: times(1, cut), requests: 2, answer: fine}),
	one(scenario{name: "a lost answer", invoke: true, url: true, counted: 1}, step{faults: times(1, lose), requests: 2, answer: `{"allowed":true,"reason":"duplicate","granted":1,"outage":null}`}),
	one(scenario{name: "lost answers", invoke: true, counted: 1}, step{faults: times(3, lose), requests: 3, answer: lost}),
	{name: "a lost answer of a partial check", invoke: true, counted: 10, steps: []step{
		{faults: times(1, lose), call: `{"call":"check","activity":"create_post","args":{"count":12,"partial":true}}`, requests: 1,
			answer: `{"allowed":true,"reason":"unavailable","granted":12,"outage":"*"}`},
	}},
	one(scenario{name: "a late answer", invoke: true, url: true, options: hasty, counted: 1}, step{faults: times(1, late), requests: 2, most: inHaste, answer: `{"allowed":true,"reason":"duplicate","outage":null}`}),
	one(scenario{name: "no answer", invoke: true, url: true, options: hasty}, step{faults: times(3, hang), requests: 2, most: inHaste, answer: lost}),
	one(scenario{name: "no server", invoke: true, noAgent: "an agent that has never answered is missing: see beside", env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": "http://127.0.0.1:1"}}, step{requests: 0, answer: lost}),
	one(scenario{name: "a function that timed out", invoke: true, noAgent: ofLambda}, step{faults: times(1, timedOut), requests: 1, answer: lost}),
	one(scenario{name: "a lost answer of a status", invoke: true}, step{faults: times(1, lose), call: status, requests: 2, answer: `{"allowed":true,"activityCount":0}`}),
	{name: "a lost answer of a reset", invoke: true, url: true, counted: 1, steps: []step{
		{call: check, requests: 1, answer: `{"activityCount":1}`},
		{faults: times(1, lose), call: `{"call":"reset","activity":"create_post"}`, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{pause: 1100 * time.Millisecond, call: check, requests: 1, answer: `{"activityCount":1}`},
	}},
	{name: "the guard's own outage is for one call only", invoke: true, url: true, counted: 2, steps: []step{
		{faults: times(1, withoutTable), call: check, requests: 1, answer: lost},
		{call: check, requests: 1, answer: fine},
		{faults: times(3, absence), call: status, requests: 3, class: "OutageError", message: "{F} did not answer: *"},
		{pause: 1100 * time.Millisecond, faults: times(1, withoutTable), call: check, requests: 1, answer: `{"reason":"unavailable","outage":"{F} did not answer: *"}`},
		{call: check, requests: 1, answer: fine},
	}},
	{name: "fail fast after an outage", invoke: true, url: true, counted: 2, steps: []step{
		{faults: times(3, absence), call: check, requests: 3, answer: `{"outage":"{F} did not answer: *"}`},
		{call: check, requests: 0, answer: `{"allowed":true,"reason":"unavailable","outage":"{F} did not answer a moment ago"}`},
		{call: status, requests: 0, class: "OutageError", message: "{F} did not answer a moment ago"},
		{pause: 1100 * time.Millisecond, call: check, requests: 1, answer: fine},
		{call: check, requests: 1, answer: fine},
	}},
}
