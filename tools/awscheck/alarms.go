package awscheck

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// ringing lists the alarms that failures of alarms must ring. The others need an hour, a crash, or a full account.
var ringing = []string{"DegradedAlarm", "PostsGuardErrorsAlarm", "TableWriteThrottlesAlarm", "CleanupErrorsAlarm", "CleanupDeadLettersAlarm", "DelayedDeadLettersAlarm"}

// alarms causes failures until each alarm has rung. The table takes one write a second, events have no user, runs of cleanup
// fail, and a message is no job.
func alarms(ctx context.Context, s *Stack) (Figures, error) {
	if _, err := s.dynamo.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: aws.String(s.table()), OnDemandThroughput: &dynamotypes.OnDemandThroughput{MaxWriteRequestUnits: aws.Int64(1)},
	}); err != nil {
		return nil, err
	}
	if _, err := s.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(s.ids["DelayedQueue"]), MessageBody: aws.String("no job")}); err != nil {
		return nil, err
	}
	failing, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() { end(); wg.Wait() }()
	wg.Go(func() {
		for n := 0; sleep(failing, 100*time.Millisecond); n++ {
			_, _ = s.ask(failing, "CommentsGuardFunction", fmt.Sprint("alarms-", n), "add_comment") // whatever it answers
		}
	})
	wg.Go(func() {
		for sleep(failing, 15*time.Second) {
			_, _ = s.ask(failing, "PostsGuardFunction", "", "create_post") // an error, which the alarm counts
			_, _ = s.lambda.Invoke(failing, &lambda.InvokeInput{FunctionName: aws.String(s.ids["CleanupFunction"]),
				InvocationType: types.InvocationTypeEvent, Payload: []byte(`{"dryrun": 1}`)})
		}
	})
	began, figures := time.Now(), Figures{}
	names, ids := []string{}, map[string]string{}
	for _, name := range ringing {
		names, ids[s.ids[name]] = append(names, s.ids[name]), name
	}
	err := until(ctx, 25*time.Minute, fmt.Sprint("all of these alarms ring: ", ringing), func() (bool, error) {
		var out struct {
			MetricAlarms []struct{ AlarmName, StateValue string }
		}
		err := s.aws(ctx, &out, append([]string{"cloudwatch", "describe-alarms", "--alarm-names"}, names...)...)
		for _, alarm := range out.MetricAlarms {
			name := ids[alarm.AlarmName] + "Seconds"
			if _, rang := figures[name]; alarm.StateValue == "ALARM" && !rang {
				figures[name] = round(time.Since(began).Seconds())
			}
		}
		return len(figures) == len(ringing), err
	})
	return figures, err
}
