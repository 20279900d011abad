package command

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	app "github.com/cric-talk/guards/limits"
)

func TestComplete(t *testing.T) {
	for typed, want := range map[string]string{
		"c":           "check cleanup completion",
		"s":           "serve status stats",
		"limits --j":  "--json",
		"x":           "",
		"--":          "--help",
		"check cre":   beginning("cre", activityNames()),
		"check like ": "--help --user --subject --count --partial --times --tier --role --json --store --table --endpoint --region",
		"check like --user u1 --role r --json --r": "--role --region",
		"check --partial cr":                       beginning("cr", activityNames()),
		"check --user ":                            "",
		"check --user l":                           "",
		"check --user like vie":                    beginning("vie", activityNames()),
		"check --user=u1 vie":                      beginning("vie", activityNames()),
		"check --usr vie":                          beginning("vie", activityNames()),
		"check like --store ":                      "memory dynamodb",
		"check like --store=d":                     "--store=dynamodb",
		"check like --json=":                       "",
		"stats --activity add":                     beginning("add", activityNames()),
		"verify like --function r":                 beginning("r", guardNames()),
		"new --guard r":                            beginning("r", guardNames()),
		"reset -y add":                             beginning("add", activityNames()),
		"erase --y":                                "--yes",
		"erase -y --y":                             "",
		"completion ":                              "bash zsh fish",
		"replay t.csv --format ":                   "auto csv json nginx",
		"replay t.csv --unit=":                     "--unit=auto --unit=s --unit=ms",
		"replay t.csv --compare 1/1m --co":         "--compare --columns",
		"replay t.csv --suggest 9% --s":            "--subject --skip-bad",
		"serve --addr 127.0.0.1:1 --create-table --store ": "memory dynamodb",
	} {
		var out stream
		args := append([]string{"complete", "--"}, strings.Split(typed, " ")...)
		if status := run(t.Context(), args, session{guards: app.All, out: &out, err: io.Discard}); status != done {
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

// beginning returns the names that begin with a text.
func beginning(text string, names []string) string {
	others := func(name string) bool { return !strings.HasPrefix(name, text) }
	return strings.Join(slices.DeleteFunc(names, others), " ")
}

// guardNames returns the names of all guards.
func guardNames() (all []string) {
	for _, g := range app.All {
		all = append(all, g.Name)
	}
	return all
}

func activityNames() []string { return limits.Guards(app.All).Activities() }
