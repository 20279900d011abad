package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/wiring"
)

// patience is how long a person waits for a table that does not answer.
const patience = 10 * time.Second

// storeFlags choose where a command counts.
type storeFlags struct {
	Store *string `enum:"memory,dynamodb" placeholder:"memory" help:"Where to count: memory (the embedded store, gone when the command ends; the default) or dynamodb."`
	tableFlags
}

// tableFlags choose a table in DynamoDB.
type tableFlags struct {
	Table    string `placeholder:"NAME" help:"The DynamoDB table. Default: TABLE_NAME, or rateLimit."`
	Endpoint string `placeholder:"URL" help:"DynamoDB's address, such as http://127.0.0.1:8000. Default: AWS_ENDPOINT_URL_DYNAMODB, or AWS itself."`
	Region   string `placeholder:"NAME" help:"The table's region. Default: as the AWS CLI finds it."`

	store   store     // open sets it
	opened  tableName // open sets it
	address string    // the table's endpoint, if it is not AWS's own; open sets it
	reach   *reacher  // the latest store's; open sets it
}

// A tableName names a table in JSON.
type tableName struct {
	Table  string `json:"table"`
	Region string `json:"region"`
}

// A store is where a command counts.
type store struct {
	ratelimit.Store
	table  cleanup.Table   // the same items, for operators
	live   liveedit.Table  // nil: there are no live limits
	dynamo *table.DynamoDB // the table, if it is in DynamoDB; otherwise nil
}

// open opens the store. It sends no requests.
func (f *storeFlags) open(ctx context.Context) error {
	switch {
	case !f.inMemory():
		return f.tableFlags.open(ctx)
	case f.given():
		return errors.New("--table, --endpoint and --region go with --store dynamodb")
	}
	s := new(memstore.Store)
	f.store = store{Store: s, table: table.Memory{Store: s}}
	return nil
}

// inMemory reports whether the command counts in the embedded store.
func (f *storeFlags) inMemory() bool { return f.Store == nil || *f.Store == "memory" }

// given reports whether one of the flags was given. A command without a table
// refuses them, because they would have no effect.
func (f *tableFlags) given() bool { return f.Table != "" || f.Endpoint != "" || f.Region != "" }

// limiter returns a limiter that counts in s. It sends each request once and
// has no memory, so that a person sees every failure at once.
func (s store) limiter(env session) *ratelimit.Limiter {
	return &ratelimit.Limiter{Store: s.Store, Now: env.now}
}

// open opens the table. It sends no requests.
func (f *tableFlags) open(ctx context.Context) error {
	if err := checkURL("--endpoint", f.Endpoint, "http://127.0.0.1:8000"); err != nil {
		return err
	}
	setting, name := "TABLE_NAME", os.Getenv("TABLE_NAME") // empty counts as unset, as in the functions
	if f.Table != "" {
		setting, name = "--table", f.Table
	}
	var err error
	if f.opened.Table, err = wiring.TableName(setting, name); err != nil {
		return err
	}
	cfg, err := f.aws(ctx)
	if err != nil {
		return err
	}
	f.opened.Region = cfg.Region
	f.store = storeOf(dynamostore.New(cfg, f.opened.Table, func(o *dynamodb.Options) {
		if f.Endpoint != "" { // the SDK's variable would override an endpoint in cfg
			o.BaseEndpoint = aws.String(f.Endpoint)
		}
		f.address = aws.ToString(o.BaseEndpoint)
		f.reach = &reacher{client: o.HTTPClient, answer: answerWait, dynamo: true}
		o.HTTPClient = f.reach
	}))
	return nil
}

// checkURL returns an error if the value of a flag is no URL. An empty value
// counts as unset.
func checkURL(flag, value, example string) error {
	if u, err := url.Parse(value); value != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return input.Invalid(flag, input.Show(value), "a URL such as "+example)
	}
	return nil
}

// storeOf returns the store in a table.
func storeOf(s *dynamostore.Store) store {
	t := table.New(s.Table())
	return store{s, t, dynamoedit.New(s.Table()), t}
}

// aws loads the configuration as the AWS CLI does. If the region or the
// credentials are missing, it returns an error that names what to set. The SDK
// would notice that only with the first request, and its error helps less.
func (f *tableFlags) aws(ctx context.Context) (aws.Config, error) {
	for _, name := range []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"} {
		if err := checkURL(name, os.Getenv(name), "http://127.0.0.1:8000"); err != nil {
			return aws.Config{}, err
		}
	}
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

// where names the table that open opened: its name, region and address.
func (f *tableFlags) where() string {
	where := fmt.Sprintf("the table %s in %s", f.opened.Table, f.opened.Region)
	if f.address != "" {
		where += " at " + f.address
	}
	return where
}

// decide asks a guard while a person waits for the answer.
func decide(ctx context.Context, h *guard.Handler, r guard.Request) (guard.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return h.Decide(ctx, r)
}

// follow reads the live limits and the blocks. Without a table it returns nil, which follows
// nothing. What is damaged is noted, and left out.
func (c session) follow(ctx context.Context, settings live.Source) (*live.Follower, error) {
	if settings == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var found fixed
	s, err := settings.Settings(ctx, true)
	if err == nil {
		var readable live.Settings
		if readable, err = s.Settings(); err == nil {
			found.settings = s
		}
		c.noteDamagedLimits(readable)
	}
	if err := c.readOn("live limits", err); err != nil {
		return nil, err
	}
	b, err := settings.Blocks(ctx, true)
	if err == nil {
		var readable live.Blocks
		if readable, err = b.Blocks(); err == nil {
			found.blocks = b
		}
		c.noteDamaged(readable)
	}
	if err := c.readOn("blocks", err); err != nil {
		return nil, err
	}
	f := &live.Follower{Source: found, Guards: c.guards}
	return f, f.Read(ctx)
}

// A fixed source has what a command has read once.
type fixed struct{ settings, blocks live.Stored }

// Settings implements [live.Source].
func (f fixed) Settings(context.Context, bool) (live.Stored, error) { return f.settings, nil }

// Blocks implements [live.Source].
func (f fixed) Blocks(context.Context, bool) (live.Stored, error) { return f.blocks, nil }

// reached turns a failure to reach the table into [input.Unavailable], which
// ends the command with its own exit status. It returns other errors unchanged.
func reached(err error) error {
	if _, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return input.NewUnavailable(err)
	}
	return err
}

// How long a command waits for an address that has not answered yet. People
// notice a mistyped address within 3 s. A server that accepts the connection
// exists, so it may take longer to answer when it is busy.
const (
	connectWait = 2500 * time.Millisecond
	answerWait  = 10 * time.Second
)

// A reacher is the HTTP client of a command. Until the address has answered
// once, a failed request is an *unreached error, which the SDK does not retry.
// After that, the SDK retries as usual.
type reacher struct {
	client   aws.HTTPClient
	answer   time.Duration // how long the first answer may take on a connection; 0: as long as the request's context allows
	dynamo   bool          // the first answer must be DynamoDB's
	answered atomic.Bool
	failed   atomic.Pointer[string] // how the latest answer failed, such as ThrottlingException; nil: it did not
}

// Do implements the SDK's HTTP client.
func (c *reacher) Do(r *http.Request) (*http.Response, error) {
	if c.answered.Load() {
		response, err := c.client.Do(r)
		if err == nil {
			c.note(response)
		}
		return response, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	silent := "no connection in " + wait(connectWait)
	deadline := time.AfterFunc(connectWait, cancel)
	defer deadline.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		deadline.Stop()
		if c.answer > 0 {
			silent = "no answer in " + wait(c.answer)
			deadline.Reset(c.answer)
		}
	}})
	response, err := c.client.Do(r.WithContext(ctx))
	if err == nil && c.dynamo && !fromDynamoDB(response.Header) {
		err = fmt.Errorf("what answers there is not DynamoDB: %s", response.Status)
		_ = response.Body.Close()
	}
	switch {
	case err == nil:
		c.answered.Store(true)
		c.note(response)
		return response, nil // ctx ends with the command, because its end would close the body
	case r.Context().Err() == nil && ctx.Err() != nil:
		err = errors.New(silent)
	}
	cancel()
	if u, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = u.Err
	}
	if r.Context().Err() != nil { // the caller stopped waiting
		return nil, err
	}
	return nil, &unreached{r.URL.Scheme + "://" + r.URL.Host, err}
}

// note keeps how an answer failed. The SDK repeats a request that was throttled until the
// command's time is over, and then its error tells only that.
func (c *reacher) note(response *http.Response) {
	c.failed.Store(nil)
	if response.StatusCode < 400 {
		return
	}
	begin, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), response.Body), response.Body}
	failed := response.Status
	var body struct {
		Type string `json:"__type"`
	}
	if err == nil && json.Unmarshal(begin, &body) == nil && body.Type != "" {
		failed = body.Type[strings.LastIndex(body.Type, "#")+1:]
	}
	c.failed.Store(&failed)
}

// cause returns how the latest answer failed; empty: it did not.
func (c *reacher) cause() string {
	if c == nil || c.failed.Load() == nil {
		return ""
	}
	return *c.failed.Load()
}

// fromDynamoDB reports whether an answer can be DynamoDB's or an emulator's.
// Another server would look like an empty or a broken table.
func fromDynamoDB(h http.Header) bool {
	return h.Get("X-Amzn-Requestid") != "" || strings.HasPrefix(h.Get("Content-Type"), "application/x-amz-json")
}

// An unreached error means that nothing answered at an address.
type unreached struct {
	address string
	cause   error
}

func (e *unreached) Error() string {
	return fmt.Sprintf("%s can't be reached: %v", e.address, e.cause)
}

func (e *unreached) Unwrap() error { return e.cause }

// RetryableError tells the SDK not to send the request again.
func (e *unreached) RetryableError() bool { return false }
