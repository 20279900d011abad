package awscheck

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

const usage = `usage: aws-check [flags], in the root of the repository, after sam build

It deploys two stacks to the AWS account of your environment, measures what docs/unmeasured.md lists, and removes both stacks,
even after Ctrl-C. The programs sam and aws must be in the path.

exit status: 0: no check failed. 1: a check failed. 2: wrong arguments. 3: AWS can't be reached, or something could not be
created or removed. 130: interrupted, or you answered no.

`

// cost is calculated. A run makes at most 40,000 invocations with their logs, and uses at most 100,000 write units. Alarms and
// metrics are there for an hour, and a snapshot for three.
const cost = "less than $0.50 by the list prices of us-east-1"

type options struct {
	yes, keep, long, json bool
	out, remove           string
}

func parse(args []string, errs io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("aws-check", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.BoolVar(&o.yes, "yes", false, "do not ask before something is created")
	flags.BoolVar(&o.keep, "keep", false, "do not remove the stacks at the end")
	flags.BoolVar(&o.long, "long", false, "also wait for alarms, which takes half an hour more")
	flags.BoolVar(&o.json, "json", false, "write the result to standard output as JSON")
	flags.StringVar(&o.out, "out", "", "also write the result to this `file` as JSON")
	flags.StringVar(&o.remove, "remove", "", "only remove what a run with this `id` has left")
	flags.Usage = func() { _, _ = io.WriteString(errs, usage); flags.PrintDefaults() }
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		err = fmt.Errorf("the arguments are %q, want none", flags.Args())
	} else if o.remove != "" && !regexp.MustCompile(`^[0-9a-f]{6}$`).MatchString(o.remove) {
		err = fmt.Errorf("-remove is %q, want the six digits in the names of the stacks", o.remove)
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "aws-check:", err)
	}
	return o, err
}

// Main runs the command and returns its exit status. After ctx ends, it removes what it has created.
func Main(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitPassed
	}
	if err != nil {
		return exitUsage
	}
	s, account, err := connect(ctx, o, errs)
	if err != nil {
		_, _ = fmt.Fprintln(errs, "aws-check:", err)
		return exitAWS
	}
	removal := "everything is removed at the end"
	if o.keep {
		removal = "nothing is removed; later, run this command with -remove " + s.ID
	}
	where := fmt.Sprintf("the account %s in %s", account, s.Region)
	if s.Endpoint != "" {
		where += ", an emulator at " + s.Endpoint
	}
	question := fmt.Sprintf("Create the stacks %s and %s in %s? It costs %s, and %s. [y/N] ", s.name(), s.probe(), where, cost, removal)
	if o.remove != "" {
		question = fmt.Sprintf("Remove the stacks %s and %s, with their table and layers, from %s? [y/N] ", s.name(), s.probe(), where)
	}
	if !agrees(ctx, question, o.yes, in, errs) {
		return exitInterrupted
	}
	r := run{checks: Checks, long: o.long, keep: o.keep, log: errs, deploy: func(ctx context.Context) error { return s.deploy(ctx, o.long) }, remove: s.remove, stack: s}
	if o.remove != "" {
		r.checks, r.deploy, r.keep = nil, func(context.Context) error { return nil }, false
	}
	return write(r.run(ctx), o, out, errs)
}

// connect returns a stack in the account and region of the environment, and the account's number.
func connect(ctx context.Context, o options, errs io.Writer) (*Stack, string, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, "", err
	}
	if cfg.Region == "" {
		return nil, "", errors.New("no region: set AWS_REGION")
	}
	id := o.remove
	if id == "" {
		random := make([]byte, 3)
		_, _ = rand.Read(random) // never fails
		id = fmt.Sprintf("%x", random)
	}
	s := newStack(cfg, id, errs)
	var caller struct{ Account string }
	if err := s.aws(ctx, &caller, "sts", "get-caller-identity"); err != nil {
		return nil, "", err
	}
	account, err := s.lambda.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil {
		return nil, "", err
	}
	s.parallel = 4
	if account.AccountLimit != nil {
		s.parallel = min(50, max(4, int(aws.ToInt32(account.AccountLimit.UnreservedConcurrentExecutions))/2))
	}
	return s, caller.Account, nil
}

// agrees asks a person. Ctrl-C is a no.
func agrees(ctx context.Context, question string, yes bool, in io.Reader, errs io.Writer) bool {
	_, _ = io.WriteString(errs, question)
	if yes {
		_, _ = io.WriteString(errs, "yes\n")
		return true
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // without an answer: no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case said := <-answer:
		return said == "y" || said == "yes"
	case <-ctx.Done():
		return false
	}
}

// A run deploys, checks and removes.
type run struct {
	deploy     func(context.Context) error
	remove     func(context.Context) []string // returns what is left
	checks     []Check
	stack      *Stack
	long, keep bool
	log        io.Writer
}

func (r run) run(ctx context.Context) Report {
	began := time.Now()
	report := Report{Date: began.UTC().Truncate(time.Second), Commit: commit(ctx), Region: r.stack.Region, Endpoint: r.stack.Endpoint, Long: r.long, Checks: []Result{}}
	if err := r.deploy(ctx); err != nil {
		report.Error = err.Error()
	} else {
		report.Checks = runChecks(ctx, r.checks, r.stack, r.long, r.log)
	}
	report.interrupted = ctx.Err() != nil
	if !r.keep {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Minute)
		defer cancel()
		report.Left = r.remove(clean)
	}
	report.Seconds = round(time.Since(began).Seconds())
	return report
}

// commit describes the commit of this checkout.
func commit(ctx context.Context) string {
	out, err := program(ctx, "git", "describe", "--always", "--dirty", "--abbrev=8")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// write writes the report and returns the exit status.
func write(r Report, o options, out, errs io.Writer) int {
	show := r.writeText
	if o.json {
		show = r.writeJSON
	}
	err := show(out)
	if o.out != "" {
		var text strings.Builder
		_ = r.writeJSON(&text) // a builder takes everything
		err = errors.Join(err, os.WriteFile(o.out, []byte(text.String()), 0o600))
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "aws-check: the result could not be written:", err)
		return exitAWS
	}
	if len(r.Left) > 0 {
		_, _ = fmt.Fprintf(errs, "aws-check: to remove the rest, run this command with -remove and the six digits in its name\n")
	}
	return r.exit()
}
