// Package lambdafn builds the Lambda functions. It reads the environment, lets package wiring
// make the handler, and starts it. So a function's main is one line.
package lambdafn

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/wiring"
)

// Guard runs the guard with this name as a Lambda function. It never returns: if it
// can't start, the process ends with status 1. Mistake is as in [Start].
func Guard(page []guards.Guard, name string, mistake error) {
	Start(name, mistake, func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, func(), error) {
		h, err := NewGuard(cfg, page, name, logger)
		if err != nil {
			return nil, nil, err
		}
		return h, h.Metrics.Flush, nil
	})
}

// Cleanup runs cleanup as a Lambda function. Like Guard, it never returns.
func Cleanup(page []guards.Guard, mistake error) {
	Start("cleanup", mistake, func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, func(), error) {
		all, err := limits.Link(page)
		if err != nil {
			return nil, nil, err
		}
		name, err := wiring.Function.Table()
		if err != nil {
			return nil, nil, err
		}
		store := dynamostore.New(cfg, name)
		return &cleanup.Cleanup{Guards: all, Table: table.New(store.Table()), Live: dynamoedit.New(store.Table()), Log: logger, Metrics: output()}, nil, nil
	})
}

// NewGuard returns the handler of a guard, as the environment configures it.
func NewGuard(cfg aws.Config, page []guards.Guard, name string, logger *slog.Logger) (*guard.Handler, error) {
	all, err := limits.Link(page)
	if err != nil {
		return nil, err
	}
	g, ok := all.Named(name)
	if !ok {
		return nil, fmt.Errorf("no guard has the name %q", name)
	}
	settings, err := wiring.Function.Settings()
	if err != nil {
		return nil, err
	}
	table, err := wiring.Function.Table()
	if err != nil {
		return nil, err
	}
	h := wiring.On(wiring.Open(cfg, table), all, settings, output(), logger).Handler(g, logger)
	h.NewID = InvocationID
	return h, nil
}

// InvocationID returns Lambda's own id of the invocation, or a random id outside Lambda. When
// Lambda sends an asynchronous event again, the id stays the same, so the event is counted
// once.
func InvocationID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		return lc.AwsRequestID
	}
	return rand.Text()
}

// output is where a function writes its metrics.
func output() metrics.Writer {
	return metrics.Writer{W: os.Stdout, Namespace: wiring.Function.Namespace()}
}

// Start runs the handler that wire returns as a Lambda function. Wire also
// returns what to do when Lambda shuts the instance down, or nil. Start never
// returns: if the function can't start, the process ends with status 1. So it does with
// the mistake in its page, if there is one. Start is for functions that have more parts
// than a guard.
func Start(name string, mistake error, wire func(aws.Config, *slog.Logger) (handler lambda.Handler, end func(), err error)) {
	service := cmp.Or(os.Getenv("POWERTOOLS_SERVICE_NAME"), name)
	logger := slog.New(newNamed(lambdacontext.NewLogHandler())).With("service", service)
	cfg, err := wiring.Configure(context.Background())
	var handler lambda.Handler
	var end func()
	if err == nil {
		err = mistake
	}
	if err == nil {
		handler, end, err = wire(cfg, logger)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	logger.Info("instance started") // the dashboard counts these lines as cold starts
	quiet := &errorFilter{Handler: handler, log: os.Stderr}
	log.SetOutput(quiet)
	var options []lambda.Option
	if end != nil {
		options = append(options, lambda.WithEnableSIGTERM(func() {
			end()
			os.Exit(0) // so that Lambda does not wait for the process
		}))
	}
	lambda.StartWithOptions(quiet, options...)
}

// GuardOfPage runs the guard that GUARD_NAME names, for a program that is the same for every
// project and reads a page of limits. Like Guard, it never returns.
func GuardOfPage() {
	page, g, err := OfPage()
	if err == nil && g.DelayedQueue {
		err = fmt.Errorf("%s has a DelayedQueue: its function needs the program jobs-guard", g.Name)
	}
	Guard(page, g.Name, err)
}

// OfPage returns the page of the program, and the guard that GUARD_NAME names. The error has all
// mistakes. Then the guard has only a name, for the log.
func OfPage() ([]guards.Guard, guards.Guard, error) {
	page, err := pagefile.OfProgram()
	name := os.Getenv("GUARD_NAME")
	if name == "" {
		return nil, guards.Guard{Name: "guard"}, errors.Join(err, errors.New("GUARD_NAME is not set, want the name of a guard, such as photos-guard"))
	}
	if err != nil {
		return nil, guards.Guard{Name: name}, err
	}
	var names []string
	for _, g := range page {
		names = append(names, g.Name)
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, guards.Guard{Name: name}, fmt.Errorf("GUARD_NAME is %q, want one of %s", name, strings.Join(names, ", "))
	}
	return page, page[i], nil
}
