package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestComplete(t *testing.T) {
	for typed, want := range map[string]string{
		"c":           "check cleanup completion",
		"s":           "serve status stats",
		"limits --j":  "--json",
		"x":           "",
		"--":          "--help",
		"check cre":   "create_post create_room create_room_message",
		"check like ": "--help --user --count --partial --times --tier --role --json --store --table --endpoint --region",
		"check like --user u1 --role r --json --r": "--role --region",
		"check --partial cr":                       "create_post create_room create_room_message",
		"check --user ":                            "",
		"check --user l":                           "",
		"check --user like vie":                    "view",
		"check --user=u1 vie":                      "view",
		"check --usr vie":                          "view",
		"check like --store ":                      "memory dynamodb",
		"check like --store=d":                     "--store=dynamodb",
		"check like --json=":                       "",
		"stats --activity add":                     "add_comment",
		"verify like --function r":                 "rooms-guard room-message-guard",
		"new --guard r":                            "rooms-guard room-message-guard",
		"reset -y add":                             "add_comment",
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
