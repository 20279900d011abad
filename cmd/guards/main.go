// Guards shows and runs rate-limit guards from the command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/event"
)

// Exit statuses.
const (
	done        = 0
	refused     = 1
	wrongUse    = 2
	unreachable = 3
	interrupted = 130 // as shells have it
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], terminal())
	stop()
	os.Exit(status)
}

// A console is where a command writes.
type console struct {
	in       io.Reader // answers to questions; nil: nobody is there to ask
	out, err io.Writer // results; everything else
	color    bool      // out is a terminal that shows colours
	progress bool      // err is a terminal
}

// Ends of a command that are no fault of its own.
var (
	errRefused     = errors.New("refused")
	errInterrupted = errors.New("interrupted")
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
	Limits  limitsCommand  `cmd:"" help:"List every guard's activities and their limits, from the code itself."`
}

const description = `Rate-limit guards for AWS Lambda and DynamoDB, from the command line.

Exit status: 0 done, 1 refused, 2 wrong use or input, 3 the table could not be reached.`

// run is the program: it parses args, runs a command and returns the exit
// status.
func run(ctx context.Context, args []string, c console) int {
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
		err = command.Run()
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
	if e, ok := errors.AsType[*kong.ParseError](err); ok {
		command := "guards"
		if node := e.Context.Selected(); node != nil {
			command = node.FullPath()
		}
		_, _ = fmt.Fprintf(c.err, "guards: see %s --help\n", command)
	}
	if e, ok := errors.AsType[*event.Unavailable](err); ok {
		if cause := errors.Unwrap(e); cause != nil { // for the person here, who asked and may know
			_, _ = fmt.Fprintln(c.err, "guards:", cause)
		}
		return unreachable
	}
	return wrongUse
}
