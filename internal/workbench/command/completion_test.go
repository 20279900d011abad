package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	app "github.com/cric-talk/guards/limits"
)

func TestComplete(t *testing.T) {
	for _, project := range []struct {
		page []guards.Guard
		rows map[string]string // words by what is typed
	}{
		{app.All, map[string]string{
			"c":           "check cleanup completion",
			"x":           "",
			"--":          "--help",
			"check cre":   beginning("cre", activityNames()),
			"check like ": "--help --user --subject --limit --count --partial --times --tier --role --json --store --table --endpoint --region",
			"check like --user u1 --role r --json --r": "--role --region",
			"check --user ":                    "",
			"check --user like vie":            beginning("vie", activityNames()),
			"check --user=u1 vie":              beginning("vie", activityNames()),
			"check --usr vie":                  beginning("vie", activityNames()),
			"check like --store=d":             "--store=dynamodb",
			"check like --json=":               "",
			"stats --activity add":             beginning("add", activityNames()),
			"verify like --function r":         beginning("r", guardNames()),
			"reset -y add":                     beginning("add", activityNames()),
			"erase -y --y":                     "",
			"completion ":                      "bash zsh fish",
			"replay t.csv --compare 1/1m --co": "--compare --columns",
			"serve --addr 127.0.0.1:1 --create-table --store ": "memory dynamodb",
		}},
		{content, map[string]string{
			"limits set --group ":            "content",
			"limits set --group content p":   "posts",
			"limits unset --group=content w": "writes",
			"replay t.csv --group=":          "--group=content",
			"release ex":                     "export",
		}},
		{rooms, map[string]string{ // the beginning of NAME=ID, or a name
			"limits set write --subject ": "room tenant",
			"check write --subject ":      "room= tenant=",
			"check write --subject=te":    "--subject=tenant=",
			"erase --subject r":           "room=",
			"check write --tier ":         "pro",
			"check export --tier=":        "--tier=pro", // it has none, so the tiers of all
			"grant --user u1 --tier p":    "pro",
			"limits set write --mode ":    "enforce shadow off",
			"limits set write --mode=s":   "--mode=shadow",
			"new a-guard b 1/1m --tier ":  "pro=",
		}},
		{[]guards.Guard{{Name: "a-guard", Message: "m", Activities: []guards.Activity{
			{Name: "call", Limit: "1/1m", Tiers: guards.Tiers{"gold": "2/1m"}},
			{Name: "mail", Limit: "1/1m", Tiers: guards.Tiers{"pro": "2/1m"}},
		}}}, map[string]string{
			"check call --tier ":      "gold",
			"limits set mail --tier ": "pro",
			"check --tier ":           "gold pro",
		}},
	} {
		for typed, want := range project.rows {
			status, out, _ := session{page: project.page}.does(t, append([]string{"complete", "--"}, strings.Split(typed, " ")...)...)
			var got []string
			for line := range strings.Lines(out) {
				word, _, _ := strings.Cut(line, "\t")
				got = append(got, strings.TrimSuffix(word, "\n"))
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); status != done || diff != "" {
				t.Errorf("%q: status %d (-want +got):\n%s", typed, status, diff)
			}
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
	for _, g := range cricket.All {
		all = append(all, g.Name)
	}
	return all
}

func activityNames() []string { return cricket.All.Activities() }
