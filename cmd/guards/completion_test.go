package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
)

func TestComplete(t *testing.T) {
	for typed, want := range map[string]string{
		"c":           "check cleanup completion",
		"s":           "serve status stats",
		"limits --j":  "--json",
		"x":           "",
		"--":          "--help",
		"check cre":   activityNames("cre"),
		"check like ": "--help --user --count --partial --times --tier --role --json --store --table --endpoint --region",
		"check like --user u1 --role r --json --r": "--role --region",
		"check --partial cr":                       activityNames("cr"),
		"check --user ":                            "",
		"check --user l":                           "",
		"check --user like vie":                    activityNames("vie"),
		"check --user=u1 vie":                      activityNames("vie"),
		"check --usr vie":                          activityNames("vie"),
		"check like --store ":                      "memory dynamodb",
		"check like --store=d":                     "--store=dynamodb",
		"check like --json=":                       "",
		"stats --activity add":                     activityNames("add"),
		"verify like --function r":                 guardNames("r"),
		"new --guard r":                            guardNames("r"),
		"reset -y add":                             activityNames("add"),
		"erase --y":                                "--yes",
		"erase -y --y":                             "",
		"completion ":                              "bash zsh fish",
		"replay t.csv --format ":                   "auto csv json nginx",
		"replay t.csv --unit=":                     "--unit=auto --unit=s --unit=ms",
		"replay t.csv --compare 1/1m --co":         "--compare --columns",
		"replay t.csv --suggest 9% --s":            "--skip-bad",
		"serve --addr 127.0.0.1:1 --create-table --store ": "memory dynamodb",
	} {
		var out stream
		args := append([]string{"complete", "--"}, strings.Split(typed, " ")...)
		if status := run(t.Context(), args, console{out: &out, err: io.Discard}); status != done {
			t.Errorf("%q: status %d", typed, status)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			word, _, _ := strings.Cut(line, "\t")
			got = append(got, word)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", typed, diff)
		}
	}
}

// activityNames returns the activities that begin with a text, in the order of limits.All.
func activityNames(begin string) string {
	var found []string
	for _, g := range limits.All {
		for _, a := range g.Activities {
			if strings.HasPrefix(a.Name, begin) {
				found = append(found, a.Name)
			}
		}
	}
	return strings.Join(found, " ")
}

// guardNames returns the guards that begin with a text, in the same order.
func guardNames(begin string) string {
	var found []string
	for _, g := range limits.All {
		if strings.HasPrefix(g.Name, begin) {
			found = append(found, g.Name)
		}
	}
	return strings.Join(found, " ")
}
