// Package schema describes the guards for programs in other languages:
//
//   - event.schema.json, answer.schema.json, error.schema.json and
//     problem.schema.json are JSON Schemas of what goes in and what comes out.
//   - openapi.json describes a guard's HTTP form. It is generated from these
//     schemas.
//   - golden holds events with their answers. Each client and each schema is
//     tested with them.
//
// The program in generate also writes the clients' lists of activities.
package schema

//go:generate go run ./generate
