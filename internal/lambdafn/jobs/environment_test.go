package jobs_test

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

func TestEnvironmentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const (
		queue = "DELAYED_QUEUE_URL=http://127.0.0.1:1/000000000000/q"
		ready = "READY_QUEUE_URL=https://sqs.us-east-1.amazonaws.com/123456789012/r"
		hasty = "internal/lambdafn/jobs/testdata/hasty"
		short = `hasty, activity "job": limit is "reservoir 10/1s ahead 15m", want a window of at least 2s`
	)
	for _, tt := range []struct{ function, env, says string }{
		{hasty, queue, short},
		{hasty, queue + " " + ready, short},
		{"functions/jobs-guard", "DELAYED_QUEUE_URL=delayed", `DELAYED_QUEUE_URL is "delayed", want the URL of a queue, such as https://`},
		{"functions/jobs-guard", "DELAYED_QUEUE_URL=http://127.0.0.1:1/", `DELAYED_QUEUE_URL is "http://127.0.0.1:1/"`},
		{"functions/jobs-guard", "MODE=of", `MODE is "of"`},
		{"functions/delayed-jobs", "", `delayed-jobs: DELAYED_QUEUE_URL is "", want the URL of a queue`},
		{"functions/delayed-jobs", queue, `READY_QUEUE_URL is "", want`},
		{"functions/delayed-jobs", queue + " READY_QUEUE_URL=sqs://q/q", `READY_QUEUE_URL is "sqs://q/q"`},
		{"functions/delayed-jobs", queue + " DECISION_TIMEOUT=fast", `DECISION_TIMEOUT is "fast"`},
		{"functions/delayed-jobs", queue + " TABLE_NAME=a/b", `TABLE_NAME is "a/b"`},
	} {
		exit := lambdatest.Start(t, lambdatest.Build(t, "./"+tt.function), strings.Fields(tt.env)...).Exit(t)
		if exit.Code != 1 || !strings.Contains(exit.Logs, tt.says) {
			t.Errorf("%s with %s: %+v, want status 1 and %s", tt.function, tt.env, exit, tt.says)
		}
	}
	lambdatest.Start(t, lambdatest.Build(t, "./functions/jobs-guard")).Ready(t)
	lambdatest.Start(t, lambdatest.Build(t, "./functions/jobs-guard"), queue).Ready(t)
	lambdatest.Start(t, lambdatest.Build(t, "./functions/delayed-jobs"), queue, ready).Ready(t)
}
