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
	"github.com/aws/smithy-go/logging"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/table"
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

	place string // where the table is looked for, in words: set by open
}

// patience is how long a person waits for a table that says nothing.
const patience = 10 * time.Second

// validate refuses flags that would do nothing, or not what they seem to.
func (f *storeFlags) validate() error {
	if f.Store == "memory" && (f.Endpoint != "" || f.Region != "") {
		return errors.New("--endpoint and --region go with --store dynamodb")
	}
	return nil
}

func (f *tableFlags) validate() error {
	if u, err := url.Parse(f.Endpoint); f.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return input.Invalid("--endpoint", input.Show(f.Endpoint), "a URL such as http://127.0.0.1:8000")
	}
	return nil
}

// A store is where commands count.
type store struct {
	ratelimit.Store
	table  cleanup.Table               // the same items, for operators
	live   live.Table                  // nil if there are no live limits
	create func(context.Context) error // creates the table; nil if there is none to create
}

// open opens the store. It sends no requests.
func (f *storeFlags) open(ctx context.Context) (store, error) {
	if err := f.validate(); err != nil {
		return store{}, err
	}
	if f.Store == "memory" {
		s := new(memstore.Store)
		return store{Store: s, table: table.Memory{Store: s}}, nil
	}
	s, err := f.tableFlags.open(ctx)
	if err != nil {
		return store{}, err
	}
	t := table.New(s.Table())
	return store{s, t, dynamolive.New(s.Table()), t.Create}, nil
}

// open opens the table, and asks it nothing.
func (f *tableFlags) open(ctx context.Context) (*dynamostore.Store, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	cfg, err := f.aws(ctx)
	if err != nil {
		return nil, err
	}
	f.place = "in " + cfg.Region
	return dynamostore.New(cfg, f.Table, func(o *dynamodb.Options) {
		if f.Endpoint != "" { // here, for the SDK's variable would win over cfg's
			o.BaseEndpoint = aws.String(f.Endpoint)
		}
		if o.BaseEndpoint != nil {
			f.place = "at " + *o.BaseEndpoint
		}
	}), nil
}

// aws is the configuration as the AWS CLI finds it. What it lacks is said here,
// in terms of what to set: the first request would only fail of it.
func (f *tableFlags) aws(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(f.Region), config.WithLogger(logging.Nop{}))
	if err != nil {
		return cfg, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return cfg, errors.New("no AWS region is set: give --region, or set AWS_REGION")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return cfg, &input.Unavailable{
			What:  "no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (any will do for DynamoDB Local and guards serve)",
			Cause: err,
		}
	}
	return cfg, nil
}

// limiter returns a limiter that counts in s. It sends one request per decision
// and has no memory, so that a person sees each failure at once.
func (s store) limiter(con console) *ratelimit.Limiter {
	return &ratelimit.Limiter{Store: s.Store, Now: con.now}
}

// where is the store in words.
func (f *storeFlags) where() string {
	if f.Store == "memory" {
		return "memory"
	}
	return "the table " + f.Table
}

// follow reads the live limits. Without a table it returns nil, which follows
// nothing.
func follow(ctx context.Context, settings live.Table) (*live.Follower, error) {
	if settings == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := &live.Follower{Table: settings, Guards: limits.All}
	if err := f.Read(ctx); err != nil {
		return nil, reached(err)
	}
	return f, nil
}
