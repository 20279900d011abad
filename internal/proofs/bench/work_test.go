//go:build unix

package bench_test

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// recorded returns recorded traffic: n events of 1,000 users, 20 in a second. It makes
// each line when it is read.
func recorded(n int) io.Reader {
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewWriter(in)
		_, _ = fmt.Fprintln(lines, "time,user,activity")
		for i := range n {
			_, _ = fmt.Fprintf(lines, "%d,u%d,act\n", 1_700_000_000_000+i*50, i*7919%1000)
		}
		_ = in.CloseWithError(lines.Flush())
	}()
	return out
}

// How long it takes to replay 1,000,000 events.
func BenchmarkReplay(b *testing.B) {
	const n, most = 1_000_000, 3
	list := findings.Table{Title: "Replay of 1,000,000 events of 1,000 users", Head: []string{"limit", "s", "MB in use, at most"}}
	var goals []findings.Goal
	for _, text := range []string{"10/1m", "log 100/12h", "bucket 10/1m", "sliding 10/1m", "reservoir 10/10s ahead 15m", "minute: 10/1m, day: 200/1d"} {
		b.Run(text, func(b *testing.B) {
			var seconds []Cost
			peak := uint64(0)
			for b.Loop() {
				r := &replay.Replay{Activity: "act", Policy: policy.Must(text), Progress: func(int64) {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapInuse)
				}}
				began := time.Now()
				if reports, err := r.Compare(b.Context(), traffic.NewReader(traffic.Options{}, traffic.File{Name: "t", Text: recorded(n)})); err != nil || reports[0].Requests != n {
					b.Fatal(reports, err)
				}
				seconds = append(seconds, Cost{Wall: time.Since(began).Seconds()})
			}
			took := Of(seconds, Wall)
			list.Rows = append(list.Rows, []string{"`" + text + "`", took.String(), fmt.Sprint(peak >> 20)})
			goals = append(goals, findings.Goal{What: "seconds for 1,000,000 events with " + text, Spread: took, Most: most})
		})
	}
	Save(b, "replay", findings.Result{Tables: []findings.Table{list}, Goals: goals})
}

// How fast cleanup deletes, compared with a loop that knows all keys already and
// only deletes them, with as many requests at the same time.
func TestCleanup(t *testing.T) {
	rounds(t)
	const n = 20_000
	client := dynamotest.Client(t, dynamotest.Endpoint(t))
	var loop, sweep []Cost
	for range 5 {
		name := dynamotest.Table(t)
		fill(t, client, name, n)
		began := time.Now()
		deleteAll(t, client, name, n)
		loop = append(loop, Cost{Wall: time.Since(began).Seconds()})

		fill(t, client, name, n)
		began = time.Now()
		swept, err := table.New(client, name).Sweep(t.Context(), table.Sweep{Now: time.Now().Unix()})
		if err != nil || swept.Deleted != n {
			t.Fatal(swept, err)
		}
		sweep = append(sweep, Cost{Wall: time.Since(began).Seconds()})
	}
	list := findings.Table{Title: "Items deleted in a second, from DynamoDB Local", Head: []string{"way", "items a second"}, Rows: [][]string{
		{"a loop that knows the keys", fmt.Sprintf("%.0f", n/Of(loop, Wall).Median)},
		{"cleanup, with its scan", fmt.Sprintf("%.0f", n/Of(sweep, Wall).Median)},
	}}
	Save(t, "cleanup", findings.Result{
		Tables: []findings.Table{list},
		Goals:  []findings.Goal{{What: "time of cleanup, times the loop's", Spread: Ratio(sweep, loop, Wall), Most: 1.11}},
	})
}

func keyOf(i int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: fmt.Sprintf("0b5d8e5e-7b5b-4ac9-9f01-%012d", i)},
		"activityWindow": &types.AttributeValueMemberS{Value: "create_post#28333333"},
	}
}

// fill adds n items that have expired.
func fill(t *testing.T, client *dynamodb.Client, name string, n int) {
	t.Helper()
	inBatches(t, n, func(from, to int) error {
		var batch []types.WriteRequest
		for i := from; i < to; i++ {
			item := keyOf(i)
			item["activityCount"] = &types.AttributeValueMemberN{Value: "3"}
			item["expiresAt"] = &types.AttributeValueMemberN{Value: strconv.Itoa(1_700_000_000)}
			batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		_, err := client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{name: batch}})
		return err
	})
}

// deleteAll deletes the items of fill, with the statements of cleanup.
func deleteAll(t *testing.T, client *dynamodb.Client, name string, n int) {
	t.Helper()
	statement := `DELETE FROM "` + name + `" WHERE userId = ? AND activityWindow = ? AND expiresAt < ?`
	now := &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Unix(), 10)}
	inBatches(t, n, func(from, to int) error {
		in := new(dynamodb.BatchExecuteStatementInput)
		for i := from; i < to; i++ {
			key := keyOf(i)
			in.Statements = append(in.Statements, types.BatchStatementRequest{
				Statement: aws.String(statement), Parameters: []types.AttributeValue{key["userId"], key["activityWindow"], now},
			})
		}
		_, err := client.BatchExecuteStatement(t.Context(), in)
		return err
	})
}

// inBatches calls do for batches of 25 of n items, four at the same time.
func inBatches(t *testing.T, n int, do func(from, to int) error) {
	t.Helper()
	const size, workers = 25, 4
	batches, errs := make(chan int), make(chan error, workers)
	for range workers {
		go func() {
			var err error
			for from := range batches {
				if err == nil {
					err = do(from, min(n, from+size))
				}
			}
			errs <- err
		}()
	}
	for from := 0; from < n; from += size {
		batches <- from
	}
	close(batches)
	for range workers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}
