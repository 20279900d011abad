package delayed

import (
	"fmt"
	"strings"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/strictjson"
)

// noncharacters escapes two characters that JSON may contain and SQS refuses. The
// encoder escapes all others that SQS refuses.
var noncharacters = strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`)

// Body returns a job as the text of a message: the JSON form of [guard.Job].
// The text is the same on both queues.
func Body(job guard.Job) (string, error) {
	body, err := strictjson.Marshal(job)
	if err != nil {
		return "", fmt.Errorf("make a message of a job: %w", err)
	}
	return noncharacters.Replace(string(body)), nil
}

// parse reads a message as strictly as guards read their events. Its errors
// have the type *input.ValidationError and never show a part of the message.
func parse(body string) (job guard.Job, err error) {
	if err := strictjson.Unmarshal([]byte(body), &job, strictjson.KnownMembers); err != nil {
		return job, &input.ValidationError{Field: "body", Problem: "is not a job"}
	}
	switch {
	case job.ReadyAt < 1:
		err = &input.ValidationError{Field: "readyAt", Problem: "is not a place"}
	case job.Enqueued < 0: // 0: an early job, which keeps its place
		err = &input.ValidationError{Field: "enqueued", Problem: "is not a place"}
	case input.CheckRequestID(job.RequestID) != nil:
		err = &input.ValidationError{Field: "requestId", Problem: "is not the id of a request"}
	case job.Job == nil:
		err = &input.ValidationError{Field: "job", Problem: "is missing"}
	}
	return job, err
}
