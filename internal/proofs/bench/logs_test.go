//go:build unix

package bench_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// perGB is the price of log ingestion, as docs/operating.md has it.
const perGB = 0.50

// The bytes that one instance logs for each decision, at a steady load. At one
// decision a second, each has a line of its own.
func TestLogs(t *testing.T) {
	rounds(t)
	endpoint, binary := quickTable(t), lambdatest.Build(t, "./functions/posts-guard")
	table := findings.Table{Title: "What one instance of posts-guard logs", Head: []string{"decisions a second", "decisions", "bytes for each", "$ a million"}}
	chart := findings.Chart{Name: "logs", Title: "Bytes of log for each decision"}
	for _, rate := range []int{1, 2, 5, 10, 50, 100} {
		i, next := lambdatest.Start(t, binary, "TABLE_NAME=rateLimit", "AWS_ENDPOINT_URL_DYNAMODB="+endpoint), users()
		i.Ready(t)
		n := 10 * rate
		clock := time.NewTicker(time.Second / time.Duration(rate))
		for range n {
			i.Invoke(t, string(next()))
			<-clock.C
		}
		clock.Stop()
		i.Stop() // it writes the last line
		bytes := len(i.Logs()) / n
		table.Rows = append(table.Rows, []string{fmt.Sprint(rate), fmt.Sprint(n), fmt.Sprint(bytes), fmt.Sprintf("%.2f", float64(bytes)*1e6/(1<<30)*perGB)})
		chart.Bars = append(chart.Bars, findings.Bar{Label: fmt.Sprintf("%d a second", rate), Value: float64(bytes), Text: fmt.Sprint(bytes), Own: true})
	}
	Save(t, "logs", findings.Result{Tables: []findings.Table{table}, Charts: []findings.Chart{chart}})
}
