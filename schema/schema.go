// Package schema describes the guards for programs in other languages:
//
//   - event.schema.json and answer.schema.json are the JSON Schemas of a
//     guard's events and answers.
//   - error.schema.json is a function error.
//   - problem.schema.json is an HTTP answer that is not 200.
//   - page.schema.json is the JSON Schema of limits.json, a page of limits without Go.
//   - openapi.json describes a guard's HTTP form. It is generated from these
//     schemas.
//   - golden holds events with their answers.
//   - keys.json holds addresses and names of accounts, each with the user id that the clients
//     make of it. A row without want is a ValidationError. Its figures were made with
//     Python's ipaddress, hmac and hashlib.
//
// A golden file has these members:
//
//	name         what it shows
//	guard        the guard that is asked
//	activities   the only activities that the guard has, if not all of its own
//	limit        the limit of its first activity, if it is not the guard's own
//	group        the group of that activity, whose limits then have names
//	subjects     the subjects of that activity, each with its limit, the narrowest first
//	environment  the guard's variables; all others have their defaults
//	table        "away": the table answers no request
//	blocks       who is blocked, and from what
//	now          the time of all events, in Unix milliseconds
//	before       events that the guard gets first
//	event        the event
//	answer       the answer by Invoke; or
//	error        the function error by Invoke
//	http         the answer by Function URL; its body is left out if it is the answer by Invoke
//
// Each figure that depends on the clock follows from now. An event without a
// requestId gets the id of Lambda's own request. That is
// 00000000-0000-4000-8000-000000000001 for the first event of a file, and so on.
//
// To add a file, leave out answer, error and http, and run go test ./schema
// -update.
package schema

//go:generate go run ./generate
