package dynamostore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// BenchmarkDecision compares a decision of each policy with a bare UpdateItem
// that only adds 1 to a number: in turn, as the median of their ratios.
func BenchmarkDecision(b *testing.B) {
	for _, p := range []struct {
		name   string
		policy ratelimit.Policy
	}{
		{"window", ratelimit.FixedWindow{Limit: 10, Window: time.Minute}},
		{"bucket", ratelimit.TokenBucket{Limit: 10, Window: time.Minute, Burst: 10}},
		{"log", ratelimit.SlidingLog{Limit: 100, Window: 12 * time.Hour}},
		{"counter", ratelimit.SlidingWindow{Limit: 50, Window: time.Hour}},
		{"reservoir", ratelimit.Reservoir{Limit: 10, Window: 10 * time.Second, Ahead: 15 * time.Minute}},
		{"several", ratelimit.Several{
			{Name: "minute", Policy: ratelimit.FixedWindow{Limit: 10, Window: time.Minute}},
			{Name: "day", Policy: ratelimit.FixedWindow{Limit: 200, Window: 24 * time.Hour}},
		}},
	} {
		b.Run(p.name, func(b *testing.B) { benchmarkDecision(b, p.policy) })
	}
}

func benchmarkDecision(b *testing.B, policy ratelimit.Policy) {
	b.Helper()
	endpoint, table := dynamotest.Endpoint(b), dynamotest.Table(b)
	client := dynamotest.Client(b, endpoint)
	l := &ratelimit.Limiter{
		Store: New(dynamotest.Config(endpoint), table), Cache: ratelimit.NewCache(ratelimit.DefaultCacheSize),
		Timeout: time.Second, Now: func() time.Time { return start },
	}
	r := request("")
	r.Policy = policy
	var ratios []float64
	for n := 0; b.Loop(); n++ {
		user := fmt.Sprint("u", n/10) // ten decisions for each
		bare := timed(func() {
			update := "ADD activityCount :n"
			_, err := client.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
				TableName: &table, UpdateExpression: &update,
				Key: map[string]types.AttributeValue{
					"userId":         &types.AttributeValueMemberS{Value: "bare-" + user},
					"activityWindow": &types.AttributeValueMemberS{Value: "act#1"},
				},
				ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "1"}},
			})
			if err != nil {
				b.Fatal(err)
			}
		})
		decision := timed(func() {
			r.UserID, r.ID = user, fmt.Sprint(n)
			if d, err := l.Check(b.Context(), r); err != nil || !d.Allowed || d.Requests != 1 {
				b.Fatal(d, err)
			}
		})
		ratios = append(ratios, decision/bare)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-bare")
	b.ReportMetric(0, "ns/op") // of both together
}

// BenchmarkUnits reports what a decision costs as a window of 60 fills, with
// ids and names of full length.
func BenchmarkUnits(b *testing.B) {
	l, p := through(b)
	r := request("")
	r.Activity = "create_room_message"
	r.Policy = ratelimit.FixedWindow{Limit: 60, Window: time.Minute}
	decisions := 0
	for n := 0; b.Loop(); n++ {
		r.UserID, r.ID = fmt.Sprintf("%036d", n/60), fmt.Sprint(n)
		if d, err := l.Check(b.Context(), r); err != nil || !d.Allowed {
			b.Fatal(d, err)
		}
		decisions++
	}
	b.ReportMetric(float64(p.Counts()["UpdateItem"])/float64(decisions), "requests/op")
	b.ReportMetric(p.WriteUnits()/float64(decisions), "units/op")
}

func timed(f func()) float64 {
	began := time.Now()
	f()
	return time.Since(began).Seconds()
}
