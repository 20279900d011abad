// Run builds a release of this checkout into dist/release. See [release].
package main

import (
	"context"
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
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "make release:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it the signal handler
	}
}

func run(ctx context.Context) error {
	if err := checkFigures(ctx); err != nil {
		return err
	}
	r := release.Release{Source: ".", Functions: "dist", Out: "dist/release", Targets: release.Targets, Log: os.Stdout}
	return r.Build(ctx)
}

// checkFigures returns an error if the commit has a tag, and docs/reliability.md
// shows figures that are older than their code. Without a tag it only warns.
func checkFigures(ctx context.Context) error {
	stale, err := prove.Stale()
	if err != nil || len(stale) == 0 {
		return err
	}
	err = fmt.Errorf("figures are missing or older than their code: run make prove PART=%q", strings.Join(stale, " "))
	if exec.CommandContext(ctx, "git", "describe", "--exact-match", "--tags").Run() == nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "make release: a release with a tag would fail:", err)
	return nil
}
