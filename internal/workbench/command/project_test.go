package command

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	app "github.com/cric-talk/guards/limits"
)

// A project is a table and the guards of a project.
type project struct {
	t     *testing.T
	page  []guards.Guard
	where []string // flags that name the table
	now   time.Time
	in    io.Reader // answers questions; nil: with yes
}

// of returns a project with these guards and an empty table.
func of(t *testing.T, page []guards.Guard) *project {
	t.Helper()
	credentials(t)
	return &project{t, page, []string{"--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", dynamotest.Table(t)}, pinned, nil}
}

func ofApp(t *testing.T) *project     { t.Helper(); return of(t, app.All) }
func ofContent(t *testing.T) *project { t.Helper(); return of(t, content) }
func ofRooms(t *testing.T) *project   { t.Helper(); return of(t, rooms) }

// through lets commands reach the table through a proxy.
func (p *project) through() *dynamotest.Proxy {
	proxy := dynamotest.NewProxy(p.t)
	p.where[3] = proxy.URL()
	return proxy
}

// run runs a command on the table and answers a question with yes. A text in quotes is
// one argument.
func (p *project) run(command string) (status int, out, log string) {
	p.t.Helper()
	var printed, noted stream
	in := p.in
	if in == nil {
		in = strings.NewReader("y\n")
	}
	args := append(shellWords(command), p.where...)
	if command == "limits" || command == "limits --json" { // it reads no table
		args = shellWords(command)
	}
	status = run(p.t.Context(), args, session{
		page: p.page, in: in, out: &printed, err: &noted, now: func() time.Time { return p.now },
	})
	return status, strings.ReplaceAll(printed.String(), p.place(), "the table"), strings.ReplaceAll(noted.String(), p.place(), "the table")
}

// place is what commands say about where the table is.
func (p *project) place() string {
	return "the table " + p.where[5] + " in us-east-1 at " + p.where[3]
}

// does runs commands, which must succeed.
func (p *project) does(commands ...string) {
	p.t.Helper()
	for _, command := range commands {
		if status, _, log := p.run(command); status != done {
			p.t.Fatalf("guards %s: status %d, %s", command, status, log)
		}
	}
}

// prints runs a command, which must succeed and print this.
func (p *project) prints(command, want string) {
	p.t.Helper()
	status, out, log := p.run(command)
	if diff := cmp.Diff(want, out); status != done || diff != "" {
		p.t.Errorf("guards %s: status %d, %s (-want +got):\n%s", command, status, log, diff)
	}
}

// contains runs a command, which must print each of these texts, among others.
func (p *project) contains(command string, texts ...string) {
	p.t.Helper()
	status, out, log := p.run(command)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			p.t.Errorf("guards %s: status %d, %s\n%s, want %s", command, status, log, out, text)
		}
	}
}

// notes runs a command, which must print this message, or ask this question.
func (p *project) notes(command, text string) {
	p.t.Helper()
	if status, out, log := p.run(command); log != text {
		p.t.Errorf("guards %s: status %d, %s\n%s, want %s", command, status, out, log, text)
	}
}

// fails runs a command, which must fail with this message.
func (p *project) fails(command string, want int, message string) {
	p.t.Helper()
	if status, out, log := p.run(command); status != want || out != "" || !strings.Contains(log, message) {
		p.t.Errorf("guards %s: status %d, %q, %q, want %d, %q", command, status, out, log, want, message)
	}
}

// ends runs a command, whose results and messages must begin with these texts.
func (p *project) ends(command string, want int, out, log string) {
	p.t.Helper()
	if status, printed, noted := p.run(command); status != want || !strings.HasPrefix(printed, out) || !strings.HasPrefix(noted, log) {
		p.t.Errorf("guards %s: status %d, %q, %q, want %d, %q, %q", command, status, printed, noted, want, out, log)
	}
}

// wrong runs commands that are used wrongly, and must fail with these messages.
func (p *project) wrong(messages map[string]string) {
	p.t.Helper()
	for command, message := range messages {
		p.fails(command, wrongUse, message)
	}
}

// lacks runs a command, which must succeed and print none of these texts.
func (p *project) lacks(command string, texts ...string) {
	p.t.Helper()
	status, out, log := p.run(command)
	for _, text := range texts {
		if status != done || strings.Contains(out, text) {
			p.t.Errorf("guards %s: status %d, %s\n%s, want no %s", command, status, log, out, text)
		}
	}
}

// refuses runs a command whose request is refused.
func (p *project) refuses(command, want string) {
	p.t.Helper()
	if status, out, log := p.run(command); status != refused || out != want {
		p.t.Errorf("guards %s: status %d, %q, %s, want %d, %q", command, status, out, log, refused, want)
	}
}

// ask asks a guard of the project, as an app does.
func (p *project) ask(r guard.Request) guard.Answer {
	p.t.Helper()
	g, _, _ := cricket.Link(p.page...).Activity(r.Activity)
	store := dynamostore.New(dynamotest.Config(p.where[3]), p.where[5])
	h := &guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: store, Now: func() time.Time { return p.now }}}
	return testkit.Must(h.Decide(p.t.Context(), r))(p.t)
}

// put writes an item. An attribute whose value is a text is a string in the
// table, and version is a number.
func (p *project) put(attributes map[string]string) {
	p.t.Helper()
	item := map[string]types.AttributeValue{"version": dynamostore.Number(1)}
	for name, value := range attributes {
		item[name] = dynamostore.Text(value)
	}
	p.putItem(item)
}

func (p *project) putItem(item map[string]types.AttributeValue) {
	p.t.Helper()
	put := &dynamodb.PutItemInput{TableName: &p.where[5], Item: item}
	testkit.Must(dynamotest.Client(p.t, p.where[3]).PutItem(p.t.Context(), put))(p.t)
}

// command runs a command that needs no table.
func command(t *testing.T, page []guards.Guard, line string) (status int, out, log string) {
	t.Helper()
	return session{page: page, now: atPinned}.does(t, shellWords(line)...)
}

// does runs a command in a session, and returns what it prints.
func (c session) does(t *testing.T, args ...string) (status int, out, log string) {
	t.Helper()
	var printed, noted stream
	c.out, c.err = &printed, &noted
	status = run(t.Context(), args, c)
	return status, printed.String(), noted.String()
}

// A step is a command with its status, and a pattern for what is printed.
type step struct {
	line   string
	status int
	want   string
}

// follow runs commands of a project, whose table and region are in the environment.
func follow(t *testing.T, page []guards.Guard, steps []step) {
	t.Helper()
	credentials(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamotest.Endpoint(t))
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("TABLE_NAME", dynamotest.Table(t))
	for _, step := range steps {
		status, out, log := command(t, page, step.line)
		if status != step.status || !regexp.MustCompile(step.want).MatchString(out+log) {
			t.Errorf("%s: status %d, want %d:\n%s%s\nwant %s", step.line, status, step.status, out, log, step.want)
		}
	}
}
