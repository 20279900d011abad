// Package lambdafn builds the Lambda functions. It reads the environment, opens
// the store, makes the handler and starts it. So a function's main is one line.
package lambdafn

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
)

// Guard runs the guard with this name as a Lambda function. It never returns: if it
// can't start, the process ends with status 1.
func Guard(page []guards.Guard, name string) {
	Start(name, func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, func(), error) {
		h, err := NewGuard(cfg, page, name, logger)
		if err != nil {
			return nil, nil, err
		}
		return h, h.Metrics.Flush, nil
	})
}

// Cleanup runs cleanup as a Lambda function. Like Guard, it never returns.
func Cleanup(page []guards.Guard) {
	Start("cleanup", func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, func(), error) {
		all, err := limits.Link(page)
		if err != nil {
			return nil, nil, err
		}
		store, err := open(cfg)
		if err != nil {
			return nil, nil, err
		}
		return &cleanup.Cleanup{
			Guards: all, Table: table.New(store.Table()), Live: dynamoedit.New(store.Table()), Log: logger,
			Metrics: metrics.Writer{W: os.Stdout, Namespace: readNamespace()},
		}, nil, nil
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
	settings, err := ReadSettings()
	if err != nil {
		return nil, err
	}
	cfg.HTTPClient = throughFreezes(cfg.HTTPClient)
	store, err := open(cfg)
	if err != nil {
		return nil, err
	}
	h := settings.Handler(g, store)
	h.Log, h.Tiers = logger, all.TierNames()
	if settings.Metrics != NoMetrics {
		h.Metrics = &metrics.Batch{Writer: metrics.Writer{W: os.Stdout, Namespace: readNamespace()}}
	}
	h.Live = &live.Follower{Source: dynamolive.New(store.Table()), Guards: all, Log: logger}
	return h, nil
}

// Start runs the handler that wire returns as a Lambda function. Wire also
// returns what to do when Lambda shuts the instance down, or nil. Start never
// returns: if the function can't start, the process ends with status 1. It is for
// functions that have more parts than a guard.
func Start(name string, wire func(aws.Config, *slog.Logger) (handler lambda.Handler, end func(), err error)) {
	service := cmp.Or(os.Getenv("POWERTOOLS_SERVICE_NAME"), name)
	logger := slog.New(newNamed(lambdacontext.NewLogHandler())).With("service", service)
	cfg, err := configure()
	var handler lambda.Handler
	var end func()
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

// responseTimeout is how long AWS may take to answer one request of cleanup, for
// credentials, or to a queue. A guard's requests to its table have no such timeout: see
// throughFreezes.
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
	name, err := TableName("TABLE_NAME", os.Getenv("TABLE_NAME"))
	if err != nil {
		return nil, err
	}
	return dynamostore.New(cfg, name), nil
}

// Settings are what a guard reads from its environment, except the table's name
// and the namespace of the metrics.
type Settings struct {
	Mode            guard.Mode
	DenyOutage      bool
	RefusalIsError  bool
	DecisionTimeout time.Duration
	BypassRoles     []string
	Metrics         Metrics
}

// Metrics are those that a guard writes.
type Metrics string

// The choices of METRICS.
const (
	ByActivity Metrics = "activity" // each for each activity of the guard
	ByGuard    Metrics = "guard"    // each once for the guard
	NoMetrics  Metrics = "off"
)

// Handler returns a handler that counts in store, without log, metrics and live limits.
func (s *Settings) Handler(g limits.Guard, store ratelimit.Store) *guard.Handler {
	return &guard.Handler{
		Guard:   g,
		Limiter: &ratelimit.Limiter{Store: store, Memory: ratelimit.NewMemory(readMemory()), Timeout: s.DecisionTimeout},
		Mode:    s.Mode, DenyOutage: s.DenyOutage, RefusalIsError: s.RefusalIsError, BypassRoles: s.BypassRoles,
		MeasureGuard: s.Metrics == ByGuard,
	}
}

// ReadSettings reads the settings. Its error names the variable that cannot be
// read. An empty variable counts as unset. BYPASS_ROLES is different: empty
// means that nobody bypasses.
func ReadSettings() (s Settings, err error) {
	choice := func(name string, choices ...string) string {
		v := cmp.Or(os.Getenv(name), choices[0])
		if !slices.Contains(choices, v) {
			err = fmt.Errorf("%s is %q, want %s", name, v, strings.Join(choices, " or "))
		}
		return v
	}
	s.Mode = guard.Mode(choice("MODE", string(guard.Enforce), string(guard.Shadow), string(guard.Off)))
	s.DenyOutage = choice("ON_OUTAGE", "allow", "deny") == "deny"
	s.RefusalIsError = choice("ON_LIMIT", "answer", "error") == "error"
	s.Metrics = Metrics(choice("METRICS", string(ByActivity), string(ByGuard), string(NoMetrics)))
	if err != nil {
		return s, err
	}
	timeout := cmp.Or(os.Getenv("DECISION_TIMEOUT"), "1s")
	s.DecisionTimeout, err = time.ParseDuration(timeout)
	if err != nil || s.DecisionTimeout <= 0 || s.DecisionTimeout > policy.Late {
		return s, fmt.Errorf("DECISION_TIMEOUT is %q, want a duration such as 250ms, at most %v", timeout, policy.Late)
	}
	s.BypassRoles = BypassRoles()
	return s, nil
}

// BypassRoles reads the roles that are never limited. An empty variable means none.
func BypassRoles() (all []string) {
	roles, set := os.LookupEnv("BYPASS_ROLES")
	if !set {
		roles = "admin"
	}
	for role := range strings.SplitSeq(roles, ",") {
		if role = strings.TrimSpace(role); role != "" {
			all = append(all, role)
		}
	}
	return all
}

// readMemory returns how many bytes the [ratelimit.Memory] may take: a third of
// the function's memory, and at most [ratelimit.DefaultMemory].
func readMemory() int {
	megabytes, err := strconv.Atoi(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")) // Lambda sets it
	if err != nil || megabytes < 1 {
		return ratelimit.DefaultMemory
	}
	return min(ratelimit.DefaultMemory, megabytes<<20/3)
}

// readNamespace reads the namespace of the metrics in CloudWatch.
func readNamespace() string { return cmp.Or(os.Getenv("POWERTOOLS_METRICS_NAMESPACE"), "Guards") }

// TableName returns the name of a table in DynamoDB. An empty name means
// rateLimit. The error of a malformed name begins with setting, where it stands.
func TableName(setting, name string) (string, error) {
	name = cmp.Or(name, "rateLimit")
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	if len(name) < 3 || len(name) > 255 || strings.ContainsFunc(name, func(c rune) bool { return !strings.ContainsRune(letters, c) }) {
		return "", fmt.Errorf("%s is %q, want 3 to 255 letters, digits, dots, hyphens and underscores", setting, name)
	}
	return name, nil
}
