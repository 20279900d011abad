// Guards shows and runs rate-limit guards from the command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/input"
)

// Exit statuses.
const (
	done        = 0
	refused     = 1
	wrongUse    = 2
	unreachable = 3
	interrupted = 130 // as shells have Ctrl-C; a no to a question is the same wish
)

func main() { os.Exit(program(terminal())) }

// program is run with the process's arguments, until Ctrl-C; a second one ends
// it at once.
func program(c console) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], c)
}

// A console is what a command has of the world: streams and a clock.
type console struct {
	in       io.Reader        // answers to questions; nil: nobody is there to ask
	out, err io.Writer        // results; everything else
	color    bool             // out is a terminal that shows colours
	progress bool             // err is a terminal that can write a line anew
	now      func() time.Time // what is counted, and what has expired, goes by it; nil: time.Now
}

// Ends of a command that are no fault of its own.
var (
	errRefused     = errors.New("refused")
	errInterrupted = errors.New("interrupted")
	errDeclined    = errors.New("nothing was deleted")
)

// commands are the command line.
type commands struct {
	Check   checkCommand   `cmd:"" help:"Ask the guard that owns an activity, and count. Exit status 1 where it refuses."`
	Serve   serveCommand   `cmd:"" help:"Lambda's Invoke API for every function, on this machine."`
	Status  statusCommand  `cmd:"" help:"What is counted of a user, and what is left."`
	Verify  verifyCommand  `cmd:"" help:"Have many callers ask at once: exactly the limit gets through, or the exit status is 1."`
	Stats   statsCommand   `cmd:"" help:"How many users and items there are in the table, and of which activities."`
	Reset   resetCommand   `cmd:"" help:"Forget what is counted of a user's activity in the current window."`
	Erase   eraseCommand   `cmd:"" help:"Delete everything that is kept of a user."`
	Cleanup cleanupCommand `cmd:"" help:"Delete what has expired, as the function does."`
	Replay  replayCommand  `cmd:"" help:"What a limit would have done to recorded traffic, in figures and as a picture."`
	Limits  limitsCommand  `cmd:"" help:"List every guard's activities and their limits, and change them without a deploy."`
	Grant   grantCommand   `cmd:"" help:"Give a user a role or a tier until a date, without a deploy."`
	Revoke  revokeCommand  `cmd:"" help:"Take back what was granted to a user."`

	Completion completionCommand `cmd:"" help:"Have bash, zsh or fish complete commands, flags and activities."`
	Complete   completeCommand   `cmd:"" hidden:"" passthrough:"" help:"What may stand in place of the last word."`
}

const description = `Rate-limit guards for AWS Lambda and DynamoDB, from the command line.

Exit status:
  0    done
  1    refused (check), or not exactly the limit (verify)
  2    wrong use or input
  3    the table or the guard could not be reached
  130  ended by you: Ctrl-C, or no to a question`

// run is the program: it parses args, runs a command and returns the exit
// status.
func run(ctx context.Context, args []string, c console) int {
	if c.now == nil {
		c.now = time.Now
	}
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
		return fail(c, err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err == nil {
		err = explain(command, command.Run())
	}
	if err != nil && ctx.Err() != nil { // whatever it broke off has failed of it
		err = errInterrupted
	}
	return fail(c, err)
}

// fail says what went wrong, and returns the exit status that says so too.
func fail(c console, err error) int {
	if err == nil {
		return done
	}
	switch {
	case errors.Is(err, errRefused):
		return refused
	case errors.Is(err, errInterrupted):
		return interrupted
	}
	_, _ = fmt.Fprintln(c.err, "guards:", err)
	if advice := adviceOn(err); advice != "" {
		_, _ = fmt.Fprintln(c.err, "guards:", advice)
	}
	if errors.Is(err, errDeclined) {
		return interrupted
	}
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		return unreachable
	}
	return wrongUse
}
