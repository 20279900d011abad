package awscheck

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/cric-talk/guards/internal/delayed/sqsqueue"
	"github.com/cric-talk/guards/internal/guard"
)

// jobs sends more jobs than fit, and one that leaves the delayed queue too early. Each that waits must arrive on the ready
// queue, and none before its place.
func jobs(ctx context.Context, s *Stack) (Figures, error) {
	const sent, activity = 25, "update_member_role"
	answers := make([]answer, sent)
	if err := s.each(sent, func(i int) (err error) {
		answers[i], err = s.check(ctx, "JobsGuardFunction", map[string]any{"userId": "jobs", "activity": activity, "job": i})
		return err
	}); err != nil {
		return nil, err
	}
	want := 1 // the early one
	for _, a := range answers {
		if a.Reason != "ok" && a.Reason != "delayed" {
			return nil, fmt.Errorf("a job was answered %+v, want ok or delayed", a)
		}
		if a.Reason == "delayed" {
			want++
		}
	}
	early := guard.Job{UserID: "early", Activity: activity, RequestID: "early", Enqueued: 1, Job: json.RawMessage("1")}
	early.ReadyAt = time.Now().Add(20 * time.Second).Truncate(10 * time.Second).UnixMilli() // the start of a window
	if err := sqsqueue.New(s.config, s.ids["DelayedQueue"]).Send(ctx, early, 0); err != nil {
		return nil, err
	}
	late := map[string]float64{} // ms after its place, of each job
	err := until(ctx, time.Minute, fmt.Sprintf("%d jobs on the ready queue", want), func() (bool, error) {
		out, err := s.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(s.ids["ReadyQueue"]), MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameSentTimestamp},
		})
		if err != nil {
			return false, err
		}
		for _, m := range out.Messages {
			var job guard.Job
			if err := json.Unmarshal([]byte(*m.Body), &job); err != nil {
				return false, err
			}
			at, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64) // SQS writes a number
			late[job.RequestID] = float64(at - job.ReadyAt)
		}
		return len(late) >= want, nil
	})
	var all []float64
	for _, ms := range late {
		all = append(all, ms)
	}
	figures := Figures{"jobs": float64(len(all)), "lateP50Millis": quantile(all, 0.5), "lateMaxMillis": quantile(all, 1), "lateMinMillis": quantile(all, 0)}
	if err == nil && figures["lateMinMillis"] < 0 {
		err = fmt.Errorf("a job arrived %v ms before its place", -figures["lateMinMillis"])
	}
	return figures, err
}

// circles lets two functions send to their own queue. Lambda must stop one of them after about 16 rounds. It must not stop the
// other one, because its RecursiveLoop is Allow. The template sets the same for delayed-jobs.
func circles(ctx context.Context, s *Stack) (Figures, error) {
	const last = 40 // the probe's last round
	for _, queue := range []string{"StoppedQueue", "AllowedQueue"} {
		if _, err := s.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(s.ids[queue]), MessageBody: aws.String("1")}); err != nil {
			return nil, err
		}
	}
	err := until(ctx, 2*time.Minute, "the function that may circle has made all rounds", func() (bool, error) {
		n, err := s.rounds(ctx, "allowed")
		return n == last, err
	})
	sleep(ctx, 15*time.Second) // a function that is not stopped has made its rounds by now, too
	stopped, err2 := s.rounds(ctx, "stopped")
	allowed, err3 := s.rounds(ctx, "allowed")
	figures := Figures{"stoppedAfter": stopped, "allowed": allowed}
	if err := cmp.Or(err, err2, err3); err != nil {
		return figures, err
	}
	if stopped < 14 || stopped > 20 {
		return figures, fmt.Errorf("a loop was stopped after %v rounds, and the documents name about 16", stopped)
	}
	return figures, nil
}

// rounds returns how many rounds a looping probe has made.
func (s *Stack) rounds(ctx context.Context, loop string) (float64, error) {
	out, err := s.dynamo.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table()), ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{
		"userId": &types.AttributeValueMemberS{Value: loop}, "activityWindow": &types.AttributeValueMemberS{Value: "rounds"},
	}})
	if err != nil {
		return 0, err
	}
	n, ok := out.Item["n"].(*types.AttributeValueMemberN)
	if !ok {
		return 0, nil // it has not begun
	}
	return strconv.ParseFloat(n.Value, 64)
}
