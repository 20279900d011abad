// Run runs measurements and then writes docs/performance.md:
//
//	go run ./internal/proofs/bench/run                all but peers
//	go run ./internal/proofs/bench/run decision       one of them
//	go run ./internal/proofs/bench/run -page          only the page, from the saved results
//	go run ./internal/proofs/bench/run -check main    no page: compares this code with its merge base with main
//
// The exit status is 1 if a goal is missed, or if a figure has become worse. The
// page is written all the same.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/cric-talk/guards/internal/proofs/bench"
)

func main() {
	page := flag.Bool("page", false, "only write docs/performance.md from the saved results")
	check := flag.String("check", "", "compare this code with its merge base with this branch")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *page, *check); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it the signal handler
	}
}

func run(ctx context.Context, names []string, page bool, branch string) error {
	if branch != "" {
		return bench.Check(ctx, branch)
	}
	var missed error
	if !page {
		missed = bench.Run(ctx, names)
	}
	return errors.Join(missed, bench.WritePage())
}
