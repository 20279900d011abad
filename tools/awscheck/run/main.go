// Run measures on a real AWS account what the documents state about AWS. See [awscheck].
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cric-talk/guards/tools/awscheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := awscheck.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
