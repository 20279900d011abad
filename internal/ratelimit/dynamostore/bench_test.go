package dynamostore_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// BenchmarkDecision compares one decision of each kind with a bare UpdateItem
// that only adds 1 to a number. The two alternate, and x-bare is the median of
// their ratios. Allocations and bytes are those of the decision alone.
func BenchmarkDecision(b *testing.B) {
	for _, text := range []string{
		"10/1m", "bucket 10/1m", "log 100/12h", "sliding 50/1h", "reservoir 10/10s ahead 15m", "minute: 10/1m, day: 200/1d",
	} {
		b.Run(text, func(b *testing.B) { benchmarkDecision(b, policy.Must(text)) })
	}
}

func benchmarkDecision(b *testing.B, p policy.Policy) {
	b.Helper()
	endpoint, table := dynamotest.Endpoint(b), dynamotest.Table(b)
	client := dynamotest.Client(b, endpoint)
	l := &ratelimit.Limiter{
		Store: New(dynamotest.Config(endpoint), table), Memory: ratelimit.NewMemory(ratelimit.DefaultMemory),
		Timeout: 10 * time.Second, Now: func() time.Time { return start },
	}
	r := request("")
	r.Policy = p
	var ratios []float64
	var allocs, bytes uint64
	for n := 0; b.Loop(); n++ {
		user := fmt.Sprint("u", n/10) // ten decisions for each
		bare := timed(func() { addOne(b, client, table, "bare-"+user) })
		r.UserID, r.ID = user, fmt.Sprint(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decision := timed(func() {
			if d, err := l.Check(b.Context(), r); err != nil || !d.Allowed || d.Requests != 1 {
				b.Fatal(d, err)
			}
		})
		runtime.ReadMemStats(&after)
		allocs += after.Mallocs - before.Mallocs
		bytes += after.TotalAlloc - before.TotalAlloc
		ratios = append(ratios, decision/bare)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-bare")
	b.ReportMetric(float64(allocs)/float64(len(ratios)), "allocs/decision")
	b.ReportMetric(float64(bytes)/float64(len(ratios)), "B/decision")
	b.ReportMetric(0, "ns/op") // of both together
}

func addOne(b *testing.B, client *dynamodb.Client, table, user string) {
	b.Helper()
	update := "ADD activityCount :n"
	_, err := client.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, UpdateExpression: &update, Key: itemKey(ratelimit.Key{UserID: user, Activity: "act", Window: 1}),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": number("1")},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUnits reports the requests and write units of a decision while a
// window of 60 fills, with a user id of 36 characters.
func BenchmarkUnits(b *testing.B) {
	l, p := through(b)
	r := request("")
	r.Activity = "create_room_message"
	r.Policy = policy.Must("60/1m")
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
