package delayed

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
)

// noncharacters are what SQS does not take in a message, in JSON's escapes. All
// else that it does not take JSON has escaped already.
var noncharacters = strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`)

// Body is a job as messages have it, on both queues: guard.Job as JSON.
func Body(job guard.Job) (string, error) {
	body, err := json.Marshal(job)
	if err != nil {
		return "", fmt.Errorf("make a message of a job: %w", err)
	}
	return noncharacters.Replace(string(body)), nil
}

// parse reads a message as strictly as an event is read. The error is a
// *input.ValidationError that has nothing of the message.
func parse(body string) (job guard.Job, err error) {
	if err := json.Unmarshal([]byte(body), &job, json.RejectUnknownMembers(true)); err != nil {
		return job, &input.ValidationError{Field: "body", Problem: "is not a job"}
	}
	switch {
	case job.ReadyAt < 1:
		err = &input.ValidationError{Field: "readyAt", Problem: "is no place"}
	case job.Enqueued < 1:
		err = &input.ValidationError{Field: "enqueued", Problem: "is no place"}
	case job.Job == nil:
		err = &input.ValidationError{Field: "job", Problem: "is missing"}
	}
	return job, err
}
