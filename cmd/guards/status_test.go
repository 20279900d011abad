package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

func TestStandings(t *testing.T) {
	const now = 1_700_000_058_000 // 18 s into window 28333334
	items := map[ratelimit.Key]ratelimit.Item{
		{UserID: "u1", Activity: "create_post", Window: 28_333_334}: {State: policy.State{"activityCount": 10}},
		{UserID: "u1", Activity: "update_post", Window: 28_333_333}: {State: policy.State{"activityCount": 10}}, // this window has passed
	}
	got := map[string]standing{}
	for _, s := range standings("u1", "", items, nil, time.UnixMilli(now)) {
		got[s.Activity] = s
	}
	if _, ok := got["like"]; ok {
		t.Error("like has no limit, but is listed")
	}
	for activity, want := range map[string]standing{
		"create_post": {"posts-guard", "create_post", 10, 10, 0, 42_000, 1_700_000_100_000},
		"update_post": {"posts-guard", "update_post", 10, 0, 10, 0, 1_700_000_100_000},
	} {
		if diff := cmp.Diff(want, got[activity]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", activity, diff)
		}
	}
}
