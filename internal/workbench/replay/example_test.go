package replay_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

func ExampleReplay_Compare() {
	recorded := `time,user,activity
2026-01-05T12:00:00Z,u1,create_post
2026-01-05T12:00:10Z,u1,create_post
2026-01-05T12:00:20Z,u1,create_post
2026-01-05T12:00:20Z,u2,create_post
2026-01-05T12:01:00Z,u1,create_post
`
	r := &replay.Replay{Activity: "create_post", Policy: policy.Must("2/1m")}
	reports, err := r.Compare(context.Background(), traffic.NewReader(traffic.Options{}, traffic.File{Name: "traffic.csv", Text: strings.NewReader(recorded)}))
	if err != nil {
		fmt.Println(err)
		return
	}
	report := reports[0]
	fmt.Printf("%d allowed, %d refused; %s waits up to %d ms\n", report.Allowed, report.Refused, report.Worst[0].ID, report.LongestWaitMs)
	// Output: 4 allowed, 1 refused; u1 waits up to 40000 ms
}
