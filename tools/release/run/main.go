// Run builds a release of this checkout into dist/release. See [release]. With the arguments check v0.1.0 it builds nothing,
// and fails if this checkout can't be released as that tag.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/tools/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "make release:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it the signal handler
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "check" {
		return errors.Join(release.Check(ctx, ".", args[1]), checkFigures(true))
	}
	if len(args) > 0 {
		return fmt.Errorf("the arguments are %q, want none or check TAG", args)
	}
	if err := checkFigures(exec.CommandContext(ctx, "git", "describe", "--exact-match", "--tags").Run() == nil); err != nil {
		return err
	}
	r := release.Release{Source: ".", Functions: "dist", Out: "dist/release", Targets: release.Targets, Log: os.Stdout}
	return r.Build(ctx)
}

// checkFigures returns an error if this is the release of a tag, and docs/reliability.md
// shows figures that are older than their code. Without a tag it only warns.
func checkFigures(tagged bool) error {
	stale, err := prove.Stale()
	if err != nil || len(stale) == 0 {
		return err
	}
	err = fmt.Errorf("figures are missing or older than their code: run make prove PART=%q", strings.Join(stale, " "))
	if tagged {
		return err
	}
	fmt.Fprintln(os.Stderr, "make release: a release with a tag would fail:", err)
	return nil
}
