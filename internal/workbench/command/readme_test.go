package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

// A trial describes how to run the snippets that begin with a certain text.
type trial struct {
	begins string // the beginning of the snippets
	posts  int    // how many posts of u1 are counted before
	status int    // the exit status
	notRun string // why such a snippet can't run; empty: it can
	prints string // a pattern of what the snippet prints; empty: the document shows it, or nothing does
}

// trials has an entry for every snippet of the documents. The first entry that
// fits a snippet applies. A snippet without an entry fails the test.
var trials = []trial{
	{begins: "git clone ", notRun: "it needs the network; internal/endtoend/projects follows the rest"},
	{begins: "guards status --user ", notRun: "it needs a table; release_test.go runs these commands"},
	{begins: "guards top --near 90", notRun: "it needs a table; testdata/script/block.txtar runs similar commands"},
	{begins: "guards block --subject ip=", notRun: "it needs a table; testdata/script/block.txtar runs similar commands"},
	{begins: "guards key ip 2001:db8::1 ", notRun: "it needs the file of a key; testdata/key.txtar runs these commands"},
	{begins: "guards limits ", notRun: "it needs a table; testdata/script/live.txtar runs similar commands"},
	{begins: "guards check create_post --user u1 --count 5 --times 3", status: refused},
	{begins: "go run ./cmd/guards check "},
	{begins: "go run ./cmd/guards limits"},
	{begins: "go run ./cmd/guards replay "},
	{begins: "gzip -c docs/traffic/"},
	{begins: "go run ./cmd/guards verify "},
	{begins: "go run ./cmd/guards init ", notRun: "it makes a project; internal/endtoend/projects follows it"},
	{begins: "guards init ", notRun: "it makes a project; internal/endtoend/projects follows it"},
	{begins: "cd ../my-guards", notRun: "internal/endtoend/projects follows it"},
	{begins: "go get github.com/cric-talk/guards@latest", notRun: "it needs the network"},
	{begins: "make deploy-local", notRun: "make tour runs it"},
	{begins: "make deploy", notRun: "it needs AWS"},
	{begins: "go run ./cmd/guards generate", notRun: "it changes a checkout; generate.txtar runs it"},
	{begins: "go run ./cmd/guards new ", notRun: "it changes a checkout; internal/endtoend/projects follows docs/projects.md, and internal/workbench/scaffold docs/extending.md"},
	{begins: "guards serve", notRun: "the other snippets run while it runs"},
	{begins: "go run ./cmd/guards serve", notRun: "the other snippets run while it runs"},
	{begins: "go run ./cmd/guards erase ", status: wrongUse}, // it asks for confirmation, and no person can answer
	{begins: "aws lambda invoke --function-name posts-guard ", posts: 10},
	{begins: "aws lambda invoke --function-name cleanup "},
	{begins: "aws ", notRun: "it needs AWS"},
	{begins: "curl -H 'Content-Type: application/json' -d '{\"move\"", prints: `"ahead":"24 h 0 min"`},
	{begins: "curl ", prints: `"allowed":true`},
	{begins: "export AWS_ENDPOINT_URL_LAMBDA="},
	{begins: "export GUARDS_AGENT="},
	{begins: "make aws-check", notRun: "it needs AWS"},
	{begins: "make agent", notRun: "it needs Docker"},
	{begins: "sam ", notRun: "it needs AWS"},
	{begins: "make test", notRun: "it runs this test"},
}

// photos are the guards of the project that README makes.
var photos = []guards.Guard{{Name: "photos-guard", Message: "m", Activities: []guards.Activity{{Name: "upload_photo", Limit: "5/1m"}}}}

// A snippet is a piece of shell in a document.
type snippet struct {
	document string
	shell    string
	prints   string // the output that the document shows; empty: it shows none
	project  bool   // the reader is in the project that README makes
}

var (
	fenced = regexp.MustCompile("(?s)\n```(?:sh|bash|shell|console)\n(.*?)\n```(?:\n\n```(?:text|json)\n(.*?)\n```)?")
	inline = regexp.MustCompile("`((?:go run ./cmd/guards|aws) [^`]+)`")
)

// Each snippet that can run without AWS works as the document shows, while guards
// serve runs as README starts it.
func TestSnippetsOfTheDocumentsWork(t *testing.T) {
	all := snippets(t)
	const start = "guards serve"
	server := slices.IndexFunc(all, func(s snippet) bool { return strings.HasPrefix(s.shell, start) })
	if server < 0 {
		t.Fatal("no document shows how to start guards serve")
	}
	for i, s := range all {
		t.Run(fmt.Sprintf("%s-%d", filepath.Base(s.document), i+1), func(t *testing.T) {
			fits := slices.IndexFunc(trials, func(how trial) bool { return strings.HasPrefix(s.shell, how.begins) })
			if fits < 0 {
				t.Fatalf("%s shows a snippet that has no entry in trials:\n%s", s.document, s.shell)
			}
			how := trials[fits]
			if how.notRun != "" {
				t.Skip(how.notRun)
			}
			page := app.All
			if s.project {
				page = photos
			}
			options := strings.Fields(strings.TrimPrefix(all[server].shell, start))
			if strings.Contains(s.shell, "/clock") {
				options = append(options, "--clock")
			}
			endpoint, _ := serveGuards(t, page, atPinned, options...)
			for range how.posts {
				post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`)
			}
			p := scripts("AWS_ENDPOINT_URL_LAMBDA=" + endpoint)
			p.Dir = t.TempDir()
			setup := p.Setup
			p.Setup = func(env *testscript.Env) error {
				return errors.Join(setup(env), os.CopyFS(filepath.Join(env.WorkDir, "docs"), os.DirFS("../../../docs")))
			}
			// The server has another port, and the program is already built.
			shell := strings.NewReplacer("http://127.0.0.1:3001", endpoint, "go run ./cmd/guards", "guards").Replace(s.shell)
			program, _, _ := strings.Cut(s.shell, " ")
			script := fmt.Sprintf("[!exec:%s] skip\nstatus %d sh -e snippet\n%s-- snippet --\n%s\n", program, how.status, s.wanted()+how.wanted(), shell)
			testkit.OK(t, os.WriteFile(filepath.Join(p.Dir, "snippet.txtar"), []byte(script), 0o600))
			testscript.Run(t, p)
		})
	}
}

// wanted returns the line of a script that compares the output with the document.
func (s snippet) wanted() string {
	if s.prints == "" {
		return ""
	}
	shown := strings.NewReplacer("\n", `\n`, "'", "''").Replace(regexp.QuoteMeta(s.prints))
	return `stdout '\A` + shown + `\n?\z'` + "\n"
}

// wanted returns the line of a script that looks for the pattern in the output.
func (t trial) wanted() string {
	if t.prints == "" {
		return ""
	}
	return "stdout '" + t.prints + "'\n"
}

// snippets returns the snippets of README and docs: blocks, and commands within a
// sentence.
func snippets(t *testing.T) (all []snippet) {
	t.Helper()
	documents := testkit.Must(filepath.Glob("../../../docs/*.md"))(t)
	for _, name := range append([]string{"../../../README.md"}, documents...) {
		content := testkit.Must(os.ReadFile(name))(t)
		name = strings.TrimPrefix(filepath.ToSlash(name), "../../../")
		for _, match := range fenced.FindAllStringSubmatch(string(content), -1) {
			project := name == "README.md" && slices.ContainsFunc(all, func(s snippet) bool { return strings.Contains(s.shell, "cd ../my-guards") })
			all = append(all, snippet{name, match[1], match[2], project})
		}
		for _, match := range inline.FindAllStringSubmatch(fenced.ReplaceAllString(string(content), ""), -1) {
			all = append(all, snippet{name, strings.Join(strings.Fields(match[1]), " "), "", false})
		}
	}
	return all
}

// fakeAWS replaces the AWS CLI. It supports only lambda invoke, which writes the
// answer into a file.
func fakeAWS() {
	flags := flag.NewFlagSet("aws lambda invoke", flag.ExitOnError)
	name := flags.String("function-name", "", "")
	format := flags.String("cli-binary-format", "base64", "")
	payload := flags.String("payload", "", "")
	endpoint := flags.String("endpoint-url", os.Getenv("AWS_ENDPOINT_URL_LAMBDA"), "")
	if len(os.Args) < 3 || os.Args[1] != "lambda" || os.Args[2] != "invoke" || flags.Parse(os.Args[3:]) != nil ||
		*format != "raw-in-base64-out" || flags.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "aws: want lambda invoke ... FILE with a raw payload")
		os.Exit(wrongUse)
	}
	if err := invoke(*endpoint, *name, *payload, flags.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "aws:", err)
		os.Exit(unreachable)
	}
}

func invoke(endpoint, name, payload, file string) error {
	answer, err := http.Post(endpoint+"/2015-03-31/functions/"+url.PathEscape(name)+"/invocations", "", strings.NewReader(payload))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if failure := answer.Header.Get("X-Amz-Function-Error"); err == nil && (answer.StatusCode != http.StatusOK || failure != "") {
		err = fmt.Errorf("%s %s: %s", answer.Status, failure, body)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, body, 0o600)
}
