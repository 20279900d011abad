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
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
)

// Guard runs a guard as a Lambda function. It returns, with an exit status, only
// if it can't start.
func Guard(rules limits.Guard) int {
	return Start(rules.Name, func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, error) {
		return NewGuard(cfg, rules, logger)
	})
}

// Cleanup runs cleanup as a Lambda function. It returns as Guard does.
func Cleanup() int {
	return Start("cleanup", func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, error) {
		store, err := open(cfg)
		if err != nil {
			return nil, err
		}
		forget := func(ctx context.Context, userID string) error {
			_, err := live.Forget(ctx, dynamolive.New(store.Table()), limits.All, userID, time.Now())
			return err
		}
		return &cleanup.Cleanup{
			Table: table.New(store.Table()), Forget: forget, Log: logger,
			Metrics: metrics.Writer{W: os.Stdout, Namespace: readNamespace(os.LookupEnv)},
		}, nil
	})
}

// NewGuard wires a guard as the environment says.
func NewGuard(cfg aws.Config, rules limits.Guard, logger *slog.Logger) (*guard.Guard, error) {
	if err := rules.Validate(); err != nil {
		return nil, err
	}
	settings, err := ReadSettings(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	store, err := open(cfg)
	if err != nil {
		return nil, err
	}
	g := settings.Guard(rules, store)
	g.Log, g.Metrics = logger, os.Stdout
	g.Live = &live.Follower{Table: dynamolive.New(store.Table()), Guards: limits.All, Log: logger}
	g.Limiter.Alongside = g.Live.Look
	return g, nil
}

// Start runs what wire makes as a Lambda function, for those that have more to
// wire than a guard. It returns as Guard does.
func Start(name string, wire func(aws.Config, *slog.Logger) (lambda.Handler, error)) int {
	cfg, err := configure()
	var handler lambda.Handler
	if err == nil {
		handler, err = wire(cfg, slog.New(newNamed(lambdacontext.NewLogHandler())).With("service", service(name)))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	quiet := &errorFilter{Handler: handler, log: os.Stderr}
	log.SetOutput(quiet)
	lambda.Start(quiet)
	return 0
}

// service is the name in the log: the function's, unless Powertools' variable
// says otherwise.
func service(name string) string {
	if v := os.Getenv("POWERTOOLS_SERVICE_NAME"); v != "" {
		return v
	}
	return name
}

// responseTimeout is how long AWS may take for one request of cleanup's; a
// guard's own attempts are far shorter.
const responseTimeout = 10 * time.Second

func configure() (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = responseTimeout
	})
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithHTTPClient(client))
	if err != nil {
		return cfg, fmt.Errorf("AWS configuration: %w", err)
	}
	return cfg, nil
}

func open(cfg aws.Config) (*dynamostore.Store, error) {
	name, err := readTable(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	return dynamostore.New(cfg, name), nil
}
