// Package command is the command line of a project with guards.
//
// Each command has a file of its own, such as check.go. A long command has more
// files that begin with its name, such as replay_report.go. No command uses the
// files of another one: what commands share is in the other files.
package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cric-talk/guards/internal/limits"
)

// Main runs the command that the arguments of the process name, for a project
// with these guards. It returns the exit status.
func Main(guards limits.Guards) int { return program(terminal(guards)) }

// program runs the command that the process's arguments name. The first Ctrl-C or
// SIGTERM asks it to stop, and a second one ends the process at once.
func program(c console) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], c)
}
