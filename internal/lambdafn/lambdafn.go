// Package lambdafn wires the functions: environment, store, handler, Lambda.
package lambdafn

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// Guard runs a guard as a Lambda function. It returns, with an exit status, only
// if it can't start.
func Guard(rules limits.Guard) int {
	return start(rules.Name, func(logger *slog.Logger) (lambda.Handler, error) {
		if err := rules.Validate(); err != nil {
			return nil, err
		}
		e, err := readEnvironment(os.LookupEnv)
		if err != nil {
			return nil, err
		}
		store, err := open(e.table)
		if err != nil {
			return nil, err
		}
		return &guard.Guard{
			Rules: rules,
			Limiter: &ratelimit.Limiter{
				Store:      store,
				Cache:      ratelimit.NewCache(ratelimit.DefaultCacheSize),
				Timeout:    e.decisionTimeout,
				DenyOutage: e.denyOutage && e.mode != guard.Shadow, // in shadow nobody is refused
			},
			Mode:           e.mode,
			RefusalIsError: e.refusalIsError,
			BypassRoles:    e.bypassRoles,
			Log:            logger,
			Metrics:        os.Stdout,
			Namespace:      e.namespace,
		}, nil
	})
}

// Cleanup runs cleanup as a Lambda function. It returns as Guard does.
func Cleanup() int {
	return start("cleanup", func(logger *slog.Logger) (lambda.Handler, error) {
		table, err := readTable(os.LookupEnv)
		if err != nil {
			return nil, err
		}
		store, err := open(table)
		if err != nil {
			return nil, err
		}
		return &cleanup.Cleanup{Table: store, Log: logger}, nil
	})
}

func start(name string, wire func(*slog.Logger) (lambda.Handler, error)) int {
	handler, err := wire(slog.New(lambdacontext.NewLogHandler()).With("service", name))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	log.SetOutput(withoutErrors{os.Stderr})
	lambda.Start(handler)
	return 0
}

// responseTimeout is how long the table may take for one request of cleanup's;
// a guard's own attempts are far shorter.
const responseTimeout = 10 * time.Second

func open(table string) (*dynamostore.Store, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = responseTimeout
	})
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	return dynamostore.New(cfg, table), nil
}
