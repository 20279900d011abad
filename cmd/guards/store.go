package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/event"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// storeFlags choose where a command counts.
type storeFlags struct {
	Store string `enum:"memory,dynamodb" default:"memory" help:"Where to count: memory (the embedded store, gone with the command) or dynamodb."`
	tableFlags
}

// tableFlags name a table.
type tableFlags struct {
	Table    string `default:"rateLimit" env:"TABLE_NAME" placeholder:"NAME" help:"The DynamoDB table (${default})."`
	Endpoint string `placeholder:"URL" help:"DynamoDB's address, such as http://127.0.0.1:8000; else AWS's own, or AWS_ENDPOINT_URL_DYNAMODB."`
	Region   string `placeholder:"NAME" help:"The table's region; else as the AWS CLI finds it."`
}

// validate refuses flags that would do nothing, or not what they seem to.
func (f *storeFlags) validate() error {
	if f.Store == "memory" && (f.Endpoint != "" || f.Region != "") {
		return errors.New("--endpoint and --region go with --store dynamodb")
	}
	return nil
}

func (f *tableFlags) validate() error {
	if u, err := url.Parse(f.Endpoint); f.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return event.Invalid("--endpoint", event.Show(f.Endpoint), "a URL such as http://127.0.0.1:8000")
	}
	return nil
}

// A store counts, and can be cleaned.
type store interface {
	ratelimit.Store
	cleanup.Table
}

// open opens the store, and asks it nothing.
func (f *storeFlags) open(ctx context.Context) (store, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if f.Store == "memory" {
		return new(memstore.Store), nil
	}
	return f.tableFlags.open(ctx)
}

// open opens the table, and asks it nothing.
func (f *tableFlags) open(ctx context.Context) (*dynamostore.Store, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx, func(o *config.LoadOptions) error {
		o.Region = f.Region
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	return dynamostore.New(cfg, f.Table, func(o *dynamodb.Options) {
		if f.Endpoint != "" { // here, for the SDK's variable would win over cfg's
			o.BaseEndpoint = aws.String(f.Endpoint)
		}
	}), nil
}

// limiter counts there. A table that can't be reached is an error: a person is
// asking, who wants to know.
func (f *storeFlags) limiter(ctx context.Context) (*ratelimit.Limiter, error) {
	s, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	if f.Store == "memory" {
		return &ratelimit.Limiter{Store: s}, nil
	}
	return &ratelimit.Limiter{Store: s, Timeout: 5 * time.Second}, nil
}

// where is the store in words.
func (f *storeFlags) where() string {
	if f.Store == "memory" {
		return "memory"
	}
	return "the table " + f.Table
}
