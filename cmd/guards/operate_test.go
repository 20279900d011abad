package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
)

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{"y\n": nil, "Yes\n": nil, " y": nil, "n\n": errDeclined, "\n": errDeclined, "": errDeclined, "yes please\n": errDeclined} {
		var asked strings.Builder
		err := new(questionFlags).confirm(console{in: strings.NewReader(answer), out: io.Discard, err: &asked}, "Delete?")
		if !errors.Is(err, want) || asked.String() != "Delete? [y/N] " {
			t.Errorf("%q after %q: %v, want %v", answer, &asked, err, want)
		}
	}
	for _, f := range []questionFlags{{Yes: true}, {DryRun: true}} {
		if err := f.confirm(console{}, "Delete?"); err != nil {
			t.Errorf("%+v: %v, want no question", f, err)
		}
	}
	if err := new(questionFlags).confirm(console{}, "Delete?"); err == nil {
		t.Error("nobody is there to ask, and it goes on")
	}
}

func TestStandings(t *testing.T) {
	const now = 1_700_000_058_000 // 18 s into window 28333334
	items := map[ratelimit.Key]ratelimit.Item{
		{UserID: "u1", Activity: "create_post", Window: 28_333_334}: {State: ratelimit.State{"activityCount": 10}},
		{UserID: "u1", Activity: "update_post", Window: 28_333_333}: {State: ratelimit.State{"activityCount": 10}}, // has passed
	}
	got := map[string]standing{}
	for _, s := range standings("u1", "", items, now) {
		got[s.Activity] = s
	}
	if _, ok := got["like"]; ok {
		t.Error("like is never counted, and stands there")
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
