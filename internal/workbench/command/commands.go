// Package command is the command line of a project with guards.
//
// Each command has a file of its own, such as check.go. A long command has more
// files that begin with its name, such as replay_files.go. No command uses the
// files of another one: what commands share is in the other files.
package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
)

// commands lists the commands in the order of the help text. The method Help of a
// command returns the text below its flags.
type commands struct {
	Check   checkCommand   `cmd:"" help:"Ask the guard that owns an activity, and count. The exit status is 1 if it refuses."`
	Serve   serveCommand   `cmd:"" help:"Offer every function through Lambda's Invoke API on this machine."`
	Status  statusCommand  `cmd:"" help:"Show what a user has done and has left."`
	Verify  verifyCommand  `cmd:"" help:"Send requests from many callers at once. The exit status is 1 unless exactly the limit was allowed."`
	Stats   statsCommand   `cmd:"" help:"Count the users and items in the table, by activity."`
	Top     topCommand     `cmd:"" help:"Show the users at or near a limit."`
	Reset   resetCommand   `cmd:"" help:"Clear one activity of a user in the current window."`
	Release releaseCommand `cmd:"" help:"Free a slot of a log whose holder is gone."`
	Erase   eraseCommand   `cmd:"" help:"Delete everything about a user."`
	Cleanup cleanupCommand `cmd:"" help:"Delete what has expired, as the function cleanup does."`
	Replay  replayCommand  `cmd:"" help:"Show what a limit would have done to recorded traffic, as figures or as a picture."`
	Limits  limitsCommand  `cmd:"" help:"List the limits of all guards, or change them without a deploy."`
	Grant   grantCommand   `cmd:"" help:"Give a user a role or a tier until a date, without a deploy."`
	Revoke  revokeCommand  `cmd:"" help:"Take back everything that was granted to a user."`
	Block   blockCommand   `cmd:"" help:"Refuse a user or a subject everything, or one activity, until a date."`
	Unblock unblockCommand `cmd:"" help:"Lift the blocks of a user or a subject."`
	Key     keyCommand     `cmd:"" help:"Print the user id that the clients send for an IP address or the name of an account."`

	Init       initCommand       `cmd:"" help:"Make a project of your own, with your limits."`
	New        newCommand        `cmd:"" help:"Add a guard or an activity to a project."`
	Generate   generateCommand   `cmd:"" help:"Write what follows from the page of limits: parts of the template, and lists of activities."`
	Version    versionCommand    `cmd:"" help:"Print the version, the commit and its date."`
	Completion completionCommand `cmd:"" help:"Print a script that completes commands in bash, zsh or fish."`
	Complete   completeCommand   `cmd:"" hidden:"" passthrough:"" help:"Print the words that can complete the last one."`
}

// limitsCommand groups the commands about limits.
type limitsCommand struct {
	List    listCommand    `cmd:"" default:"withargs" help:"List the limits of all guards, as the code has them."`
	Set     setCommand     `cmd:"" help:"Change the limit or the mode of an activity without a deploy."`
	Unset   unsetCommand   `cmd:"" help:"Undo the changes of an activity."`
	Diff    diffCommand    `cmd:"" help:"Show what differs from the code, what is granted, and who is blocked."`
	History historyCommand `cmd:"" help:"Show who changed what, when and why."`
	Repair  repairCommand  `cmd:"" help:"Drop what can't be read in the live limits, the grants and the blocks."`
	Export  exportCommand  `cmd:"" help:"Print the live limits, modes and grants as JSON."`
	Import  importCommand  `cmd:"" help:"Replace the live limits, modes and grants by exported ones."`
}

func (limitsCommand) Help() string {
	return `Examples:
  guards limits
  guards limits set {activity} {limit} --why "a launch"
  guards limits diff`
}

const description = `Ask, test and operate rate-limit guards on AWS Lambda and DynamoDB.

Each command has --json. Questions, progress and notes go to standard error. NO_COLOR=1
turns colours off. If a table is wider than the terminal, the columns that you need most
stay, and the others go under each row; a file gets all columns. A flag that would have no
effect is an error, such as --table without --store dynamodb, and so is an empty value.
A wrong address is named within 3 s; DynamoDB's first answer may take 10 s. Ctrl-C or
SIGTERM stops a command, which prints what was done until then.

Exit status:
  0    done
  1    refused (check), or not exactly the limit (verify)
  2    wrong use or input
  3    the table or the guard could not be reached
  130  you stopped it with Ctrl-C or SIGTERM, or answered no`

// run parses args, runs the command and returns the exit status.
func run(ctx context.Context, args []string, c session) int {
	if c.now == nil {
		c.now = time.Now
	}
	linked, wrong := limits.Link(c.page)
	c.guards, wrong = linked, cmp.Or(c.wrongPage, wrong)
	exited := -1
	parser, err := kong.New(&commands{},
		kong.Name("guards"),
		kong.Description(description),
		kong.Writers(c.out, c.err),
		kong.Exit(func(status int) { exited = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
	)
	if err != nil {
		return c.fail(err)
	}
	fillExamples(parser.Model.Node, examples(c.guards))
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version": // what people try first
		args[0] = "version"
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // kong has printed the help
		return exited
	}
	if err == nil && !command.Selected().Passthrough { // the shell completes empty words too
		err = cmp.Or(checkEmpty(command), checkTwice(command))
	}
	if err == nil && c.needsPage(command) {
		err = wrong
	}
	if err == nil {
		c.noteOtherPage(command)
		err = command.Run()
		if e, ok := reflect.TypeAssert[interface{ explain(error) error }](command.Selected().Target.Addr()); ok {
			err = e.explain(err) // with what helps
		}
	}
	err = quoted(args, err)
	if err != nil && ctx.Err() != nil { // the command failed because it was interrupted
		err = errInterrupted
	}
	return c.fail(err)
}

// checkEmpty returns an error if a flag or an argument has an empty value. Such a
// value can come from the misspelled name of a shell variable. Without the check,
// it would mean the same as no flag, so the command could change another table or
// more than was meant.
func checkEmpty(c *kong.Context) error {
	for _, p := range c.Path {
		var name string
		var value *kong.Value
		switch {
		case p.Flag != nil:
			name, value = "--"+p.Flag.Name, p.Flag.Value
		case p.Positional != nil:
			name, value = "<"+p.Positional.Name+">", p.Positional
		default:
			continue
		}
		if hasEmpty(reflect.Indirect(value.Target)) {
			return input.Invalid(name, "empty", "a value")
		}
	}
	return nil
}

// checkTwice returns an error if a flag with one value is given twice. The first
// value would have no effect.
func checkTwice(c *kong.Context) error {
	seen := make(map[string]bool)
	for _, p := range c.Path {
		if p.Flag == nil || p.Flag.IsSlice() || p.Flag.IsMap() || p.Flag.IsBool() {
			continue
		}
		if seen[p.Flag.Name] {
			return fmt.Errorf("--%s is given twice", p.Flag.Name)
		}
		seen[p.Flag.Name] = true
	}
	return nil
}

// hasEmpty reports whether v is an empty text, an empty list, or a list with an
// empty text.
func hasEmpty(v reflect.Value) bool {
	if v.Kind() != reflect.Slice {
		return v.Kind() == reflect.String && v.Len() == 0
	}
	for i := range v.Len() {
		if hasEmpty(v.Index(i)) {
			return true
		}
	}
	return v.Len() == 0
}

// Main runs the command that the arguments of the process name, for a project
// with these guards. It returns the exit status. The installed program of this module goes by
// limits.json instead, if there is one: see findPage.
func Main(page []guards.Guard, now func() time.Time) int {
	c := terminal(page)
	c.findPage()
	c.now = now
	return program(c)
}

// program runs the command that the process's arguments name. The first Ctrl-C or
// SIGTERM asks it to stop, and a second one ends the process at once.
func program(c session) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], c)
}
