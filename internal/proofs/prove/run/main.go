// Run runs proofs with their long bounds and then writes docs/reliability.md:
//
//	go run ./internal/proofs/prove/run             every proof; takes hours
//	go run ./internal/proofs/prove/run explore     one proof
//	go run ./internal/proofs/prove/run -page       only the page, from the saved figures
//
// Proofs print their progress to standard error. The exit status is 1 if a proof
// fails. The other proofs still run, and the page is not written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit"
)

func main() {
	page := flag.Bool("page", false, "only write docs/reliability.md from the saved figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *page); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it the signal handler
	}
}

func run(ctx context.Context, names []string, page bool) error {
	if page {
		return prove.WritePage()
	}
	parts, err := prove.Select(names)
	if err != nil {
		return err
	}
	var failed error
	for i, p := range parts {
		fmt.Fprintf(os.Stderr, "== %s (%d of %d)\n", p.Name, i+1, len(parts))
		if err := test(ctx, p); err != nil {
			failed = errors.Join(failed, fmt.Errorf("the proof %s failed: %w", p.Name, err))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if failed != nil {
		return failed
	}
	return prove.WritePage()
}

// test runs one proof.
func test(ctx context.Context, p prove.Part) error {
	args := []string{"go", "test", "-count=1", "-timeout=3h", "-run", p.Test}
	if p.Server {
		for _, script := range []string{"scripts/with-sqs", "scripts/with-dynamodb"} {
			path, err := filepath.Abs(script)
			if err != nil {
				return err
			}
			args = append([]string{path}, args...)
		}
	}
	// go test prints progress as it comes only for the package in the current folder.
	return findings.Run(ctx, p.Package, os.Stderr, []string{"PROVE=1", "TESTS=" + string(testkit.Long)}, args[0], args[1:]...)
}
