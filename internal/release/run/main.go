// Run builds a release of this checkout into dist/release. See [release].
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/cric-talk/guards/internal/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := release.Release{Source: ".", Functions: "dist", Out: "dist/release", Targets: release.Targets, Log: os.Stdout}
	if err := r.Build(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "make release:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it the signal handler
	}
}
