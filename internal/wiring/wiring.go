// Package wiring makes handlers of guards from a page of limits and the settings, and
// connects them to AWS. It knows no Lambda, so that a function and a limiter in an app's own
// process decide in the same way.
package wiring

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/retry"
)

// responseTimeout is how long AWS may take to answer one request of cleanup, for
// credentials, or to a queue. A guard's requests to its table have no such timeout: see
// throughFreezes.
const responseTimeout = 10 * time.Second

// Configure reads the SDK's configuration of this process.
func Configure(ctx context.Context) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = responseTimeout
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
	if err != nil {
		return cfg, fmt.Errorf("AWS configuration: %w", err)
	}
	return cfg, nil
}

// Open returns the store of a table for guards. Each of its requests ends by its context.
func Open(cfg aws.Config, table string) *dynamostore.Store {
	cfg.HTTPClient = throughFreezes(cfg.HTTPClient)
	return dynamostore.New(cfg, table)
}

// A Process is what the handlers of one process share: what they know of the table and of the
// live limits, and the metrics that wait.
type Process struct {
	Limiter *ratelimit.Limiter

	settings Settings
	tiers    []string // of all guards
	live     *live.Follower
	metrics  *metrics.Batch
}

// In returns the process of guards that count in store, without metrics and live limits.
func In(store ratelimit.Store, all limits.Guards, s Settings) *Process {
	return &Process{Limiter: s.limiter(store), settings: s, tiers: all.TierNames()}
}

// On returns the process of guards on a table. Log gets what concerns all of them.
func On(store *dynamostore.Store, all limits.Guards, s Settings, output metrics.Writer, log *slog.Logger) *Process {
	p := In(store, all, s)
	p.live = &live.Follower{Source: dynamolive.New(store.Table()), Guards: all, Log: log}
	if s.Metrics != NoMetrics {
		p.metrics = &metrics.Batch{Writer: output}
	}
	return p
}

// Handler returns the handler of one of the guards, with its log.
func (p *Process) Handler(g limits.Guard, log *slog.Logger) *guard.Handler {
	h := p.settings.handler(g, p.Limiter)
	h.Log, h.Tiers, h.Metrics, h.Live = log, p.tiers, p.metrics, p.live
	return h
}

// Flush writes the metrics that wait.
func (p *Process) Flush() { p.metrics.Flush() }

// Version returns the release of Guards in this program, such as v0.1.0, or "" if it was built without one. From a
// checkout, make build, make agent and SAM build without one, so that the same code gives the same program.
var Version = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
})

func versionOf(info *debug.BuildInfo) string {
	const module = "github.com/cric-talk/guards"
	if info == nil {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) { // a project has Guards as a dependency
		if m.Path != module {
			continue
		}
		if m.Replace != nil { // a checkout
			m = m.Replace
		}
		return strings.TrimSuffix(m.Version, "(devel)")
	}
	return ""
}

// connectWait is how long a guard tries to make one connection, without the time in a
// freeze.
const connectWait = 10 * time.Second

// throughFreezes returns a copy of client for a guard's requests to its table. Lambda
// freezes a guard's instance after each answer, and the timeouts of a transport go on
// meanwhile: they would end a request whose answer waits in its socket. So the copy has
// none. Each request of a guard ends by its context, which closes a dead connection, too.
// A connection that can't be made ends by the time that the process runs.
//
// The SDK keeps ten idle connections to a host. A guard's function needs one, but an app that
// decides in its own process can have many decisions under way. So the copy keeps all.
//
// It is not for requests whose context never ends, such as the SDK's for credentials.
func throughFreezes(client aws.HTTPClient) aws.HTTPClient {
	own, ok := client.(*awshttp.BuildableClient)
	if !ok {
		return client
	}
	dialer := own.GetDialer()
	dialer.Timeout = 0
	type dial = func(ctx context.Context, network, address string) (net.Conn, error)
	awake := func(dial dial) dial {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, stop := retry.Awake(ctx, connectWait)
			defer stop()
			return dial(ctx, network, address)
		}
	}
	t := own.WithReadTimeout(0).GetTransport()
	t.ResponseHeaderTimeout = 0
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	t.DialContext = awake(dialer.DialContext)
	t.DialTLSContext = awake((&tls.Dialer{NetDialer: dialer, Config: t.TLSClientConfig}).DialContext)
	// The SDK adds no timeouts to a client of another type, and the store can copy this one.
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
