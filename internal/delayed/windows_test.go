package delayed_test

import (
	"testing"

	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

func TestCheckWindows(t *testing.T) {
	for limit, refused := range map[string]string{
		"reservoir 10/2s ahead 15m":                   "",
		"reservoir 10/1999ms ahead 15m":               "reservoir 10/1999ms ahead 15m",
		"reservoir 10/1s ahead 15m":                   "reservoir 10/1s ahead 15m",
		"jobs: reservoir 10/1s ahead 1m, day: 200/1d": "reservoir 10/1s ahead 1m",
		"10/1s": "", // gives no places
	} {
		want := ""
		if refused != "" {
			want = `the limit of job is "` + refused + `", want a window of at least 2s, because SQS delivers a job up to a second late`
		}
		got := ""
		g := limits.Guard{Activities: []limits.Activity{{Name: "free", Unlimited: true}, {Name: "job", Limit: policy.Must(limit)}}}
		if err := CheckWindows(g); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: error %q, want %q", limit, got, want)
		}
	}
}
