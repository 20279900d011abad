package input

import "fmt"

// CheckUserID returns a *ValidationError unless id has 1 to 128 characters,
// each from ! to ~. The error never shows the id.
func CheckUserID(id string) error { return checkID("userId", id, 128) }

// CheckRequestID returns a *ValidationError unless id has 1 to 64 characters,
// each from ! to ~. The error never shows the id.
func CheckRequestID(id string) error { return checkID("requestId", id, 64) }

func checkID(field, id string, longest int) error {
	invalid := func(problem string) error {
		return &ValidationError{field, fmt.Sprintf("%s, want 1 to %d printable ASCII characters without a space", problem, longest)}
	}
	if id == "" {
		return invalid("is missing or empty")
	}
	for i, c := range id {
		if c < '!' || c > '~' {
			return invalid(fmt.Sprintf("has %U as character %d", c, i+1))
		}
	}
	if len(id) > longest {
		return invalid(fmt.Sprintf("has %d characters", len(id)))
	}
	return nil
}
