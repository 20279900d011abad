package command

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	app "github.com/cric-talk/guards/limits"
)

// An operator sees what is wrong in a document of live limits. Its error leaves
// that out, because functions log it.
func TestAdviceOnADocument(t *testing.T) {
	_, err := live.Parse([]byte(`{"unheard": {}}`))
	if err == nil || strings.Contains(err.Error(), "unheard") || !strings.Contains(adviceOn(err), "unheard") {
		t.Errorf("the error is %v, with the advice %q", err, adviceOn(err))
	}
}

func TestNearest(t *testing.T) {
	for misspelled, want := range map[string]string{
		"creat_post":         "create_post",
		"create_pots":        "create_post", // swapped
		"CREATE_POST":        "",
		"create-post":        "create_post",
		"create_room_mesage": "create_room_message",
		"add_coment\x00\xff": "",
		"":                   "",
	} {
		got, ok := nearest(misspelled, activityNames())
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v, want %q", misspelled, got, ok, want)
		}
	}
}

// A misspelt time zone gets the nearest name, whatever command reads it.
func TestAdviceOnATimeZone(t *testing.T) {
	for zone, want := range map[string]string{
		"Europe/Berlni": "did you mean Europe/Berlin?", "europe/berlin": "did you mean Europe/Berlin?",
		"berlin": "did you mean Europe/Berlin?", "New_York": "did you mean America/New_York?", "Mars/Olympus": "",
	} {
		_, err := policy.Parse("9/day in " + zone)
		if got := adviceOn(err); err == nil || got != want {
			t.Errorf("%s: %v, with the advice %q, want %q", zone, err, got, want)
		}
	}
}

// The list has the zones that this version of Go brings along. After an upgrade, write
// the names of $(go env GOROOT)/lib/time/zoneinfo.zip to zones.txt, sorted.
func TestTheListOfZones(t *testing.T) {
	testkit.Same(t, "zones", testkit.Zones(t), strings.Fields(zones))
}

// A limit with a space that is not quoted is several words for the command.
func TestALimitWithoutQuotes(t *testing.T) {
	for args, limit := range map[string]string{
		"new foo-guard bar log 100/12h":                                                  "log 100/12h",
		"new --guard posts-guard bar minute: bucket 1/1m, day: 10/1d":                    "minute: bucket 1/1m, day: 10/1d",
		"new foo-guard bar 5/1m --tier premium=log 9/1m":                                 "log 9/1m",
		"new foo-guard bar 5/1m --subject room=bucket 10/1m burst 3":                     "bucket 10/1m burst 3",
		"init --guard foo-guard --activity bar --limit sliding 50/1h my-guards":          "sliding 50/1h",
		"limits set create_post bucket 1/3s --why launch":                                "bucket 1/3s",
		"replay t.csv --activity create_post --limit 5/1m --compare sliding 5/1m --plot": "sliding 5/1m",
		"new foo-guard":                       "",
		"new foo-guard bar 5/1m upload_photo": "",
		"limits set create_post 5/1m now":     "",
	} {
		status, _, log := command(t, app.All, args)
		want := "guards: quote the limit, because it has a space: \"" + limit + "\"\n"
		if status != wrongUse || strings.HasSuffix(log, want) != (limit != "") || limit == "" && strings.Contains(log, "quote") {
			t.Errorf("guards %s: status %d, %s", args, status, log)
		}
	}
}

// People try help as a command.
func TestHelpIsAlsoACommand(t *testing.T) {
	for words, option := range map[string]string{"help": "--help", "help limits": "limits --help", "help limits set": "limits set --help"} {
		status, out, log := command(t, app.All, words)
		if _, want, _ := command(t, app.All, option); status != done || out != want || out == "" || log != "" {
			t.Errorf("guards %s: status %d, %s\n%s", words, status, log, out)
		}
	}
}

// leaves returns every command that a person can run, by its full name, such as
// limits set.
func leaves(t *testing.T) map[string]*kong.Node {
	t.Helper()
	parser := testkit.Must(kong.New(&commands{}, kong.Name("guards")))(t)
	fillExamples(parser.Model.Node, examples(cricket.All))
	all := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(true) {
		name := strings.TrimPrefix(leaf.Path(), "guards ")
		name, _, _ = strings.Cut(name, " <")
		name, _, _ = strings.Cut(name, " [")
		all[name] = leaf
	}
	return all
}

func has(node *kong.Node, name string) bool {
	return slices.ContainsFunc(slices.Concat(node.AllFlags(false)...), func(f *kong.Flag) bool { return f.Name == name })
}

// usual has the arguments that each command needs.
var usual = map[string]string{
	"check": "create_post --user u1", "verify": "create_post", "status": "--user u1", "reset": "create_post --user u1", "release": "pin --user u1", "erase": "--user u1",
	"serve": "--addr 127.0.0.1:0", "stats": "", "top": "", "cleanup": "", "limits list": "", "limits set": "create_post --mode off",
	"limits unset": "create_post", "limits diff": "", "limits history": "", "revoke": "--user u1", "completion": "tcsh",
	"new": "photos-guard upload_photo 5/1m --dir no-such-folder", "version": "", "generate": "--dir no-such-folder",
	"limits repair": "", "limits export": "", "limits import": "no-such-file", "block": "--user u1 --until 7d --reason spam", "unblock": "--user u1",
	"init":   "photos --guard photo --activity upload_photo --limit 5/1m",
	"key ip": "2001:db8::1", "key account": "--key-file no-such-file",
	"grant": "--user u1 --tier gold --until 2099-12-31 --reason r", "replay": "no-such-file --activity create_post",
}

// Each command prints JSON, too. It is run with everything that can go wrong. Its hints name only
// flags that the command has.
func TestHintsNameOnlyFlagsThatTheCommandHas(t *testing.T) {
	testkit.Long.Need(t)
	credentials(t)
	all := leaves(t)
	where := map[string]string{
		"nobody answers":  "--region eu-west-1 --endpoint http://127.0.0.1:1",
		"a bad address":   "--region eu-west-1 --endpoint 127.0.0.1",
		"no region":       "",
		"nothing is live": "--live --region eu-west-1 --endpoint http://127.0.0.1:1",
		"no function":     "--region eu-west-1 --lambda-endpoint http://127.0.0.1:1",
		"an unknown flag": "--jsn",
	}
	if endpoint := os.Getenv("DYNAMODB_ENDPOINT"); endpoint != "" {
		where["no table"] = "--table no-such-table --region us-east-1 --endpoint " + endpoint
	}
	for name, node := range all {
		args, ok := usual[name]
		if !ok || !has(node, "json") {
			t.Errorf("guards %s: it has no --json, or add its arguments to usual", name)
		}
		var log stream
		for _, more := range where {
			for _, extra := range []string{"", " --store dynamodb", " --yes", " --store memory"} {
				line := name + " " + args + " " + more + extra
				flag, _, _ := strings.Cut(strings.TrimPrefix(extra, " --"), " ")
				switch {
				case flag != "" && !has(node, flag):
					continue
				case name == "serve" && extra != " --store dynamodb": // it would start
					continue
				}
				run(t.Context(), strings.Fields(line), session{page: app.All, out: io.Discard, err: &log, now: atPinned})
			}
		}
		if name != "serve" && name != "generate" { // they would start, or write
			run(t.Context(), strings.Fields(name), session{page: app.All, out: io.Discard, err: &log, now: atPinned})
		}
		checkHints(t, all, name, log.String())
		for line := range strings.Lines(node.Detail) {
			if strings.HasPrefix(line, "  ") { // an example
				checkHints(t, all, name, line)
			}
		}
	}
}

// flagOrCommand finds flags, and commands such as guards limits set. A comma
// ends what belongs to a command.
var flagOrCommand = regexp.MustCompile(`--[a-z][a-z-]*|\bguards( [a-z]+)+|[,;\n]`)

// checkHints checks each flag in a text of a command. The flag belongs to the
// command before it, as in guards serve --create-table, or else to the command
// itself.
func checkHints(t *testing.T, all map[string]*kong.Node, name, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "guards: unknown flag --") || strings.Contains(line, "aws lambda") || strings.HasPrefix(line, "    --") {
			continue
		}
		at := name
		for _, word := range flagOrCommand.FindAllString(strings.TrimPrefix(line, "guards: "), -1) {
			switch command, isCommand := strings.CutPrefix(word, "guards "); {
			case isCommand:
				for command != "" && all[command] == nil && all[command+" list"] == nil {
					command = command[:max(0, strings.LastIndex(command, " "))]
				}
				if at = command; at == "" {
					t.Errorf("guards %s names a command that does not exist: %q", name, line)
				} else if all[at] == nil {
					at += " list"
				}
			case !strings.HasPrefix(word, "--"):
				at = name
			case word != "--help" && at != "" && !has(all[at], word[2:]):
				t.Errorf("guards %s has no %s, but guards %s prints %q", at, word, name, line)
			}
		}
	}
}
