package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/ratelimit"
	devconsole "github.com/cric-talk/guards/internal/workbench/console"
)

type serveCommand struct {
	Addr        string `default:"127.0.0.1:3001" placeholder:"HOST:PORT" help:"The address to listen on (${default}). There is no authentication, so keep it on loopback."`
	CreateTable bool   `help:"Create the table first if it does not exist. Goes with --store dynamodb."`
	Fail        string `enum:"none,unavailable,throttled,slow" default:"none" help:"Act as if the table were unavailable, throttled or slow. No table is needed. Default: none."`
	JSON        bool   `name:"json" help:"Print each invocation as one line of JSON."`
	storeFlags
}

// Help returns the text below the command's flags.
func (serveCommand) Help() string {
	return `This serves every guard and cleanup through Lambda's Invoke API, for an
application under development. The guards read MODE, ON_OUTAGE, ON_LIMIT,
DECISION_TIMEOUT and BYPASS_ROLES as the deployed functions do. Open the address
in a browser for a console: it shows each answer, and moves the guards' clock.
Only an address of this machine has the console. Examples:
  guards serve
  MODE=shadow guards serve
  guards serve --fail unavailable
  ON_OUTAGE=deny guards serve --fail slow
  guards serve --store dynamodb --endpoint http://127.0.0.1:8000 --create-table
  aws lambda invoke --endpoint-url http://127.0.0.1:3001 --function-name posts-guard \
    --cli-binary-format raw-in-base64-out \
    --payload '{"userId": "u1", "activity": "create_post"}' answer.json
  curl -d '{"userId": "u1", "activity": "create_post"}' http://127.0.0.1:3001/posts-guard`
}

// The functions' timeouts, as in template.yaml.
const (
	guardTimeout   = 10 * time.Second
	cleanupTimeout = 300 * time.Second
)

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, con console) error {
	settings, err := lambdafn.ReadSettings()
	if err != nil {
		return err
	}
	store, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	clock := devconsole.NewClock(con.now)
	con.now = clock.Now
	log := &serveLog{con: con, json: c.JSON}
	api := newAPI(&settings, store, con, log.observe)
	server := c.withConsole(con, api, clock, listener.Addr().String())
	con.note(fmt.Sprintf("serving %s on http://%s, counting in %s%s; press Ctrl-C to stop",
		strings.Join(slices.Sorted(maps.Keys(api.Functions)), ", "), listener.Addr(), c.countsIn(), variables()))
	con.note(aboutConsole(listener.Addr().String()))

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardTimeout)
	defer cancel()
	err = server.Shutdown(last)
	api.Wait()
	con.note("stopped after " + several(log.count(), "request"))
	return cmp.Or(err, errInterrupted)
}

// prepare opens the store, and creates the table if --create-table is given.
// Then it checks that the table can be reached. With --fail there is no table.
func (c *serveCommand) prepare(ctx context.Context) (store, error) {
	if c.Fail != "none" {
		if c.CreateTable || !c.inMemory() || c.given() {
			return store{}, errors.New("--fail needs no table: leave out --create-table, --store dynamodb, --table, --endpoint and --region")
		}
		return outage(c.Fail).open("rateLimit"), nil
	}
	s, err := c.open(ctx)
	if err != nil {
		return s, err
	}
	if c.CreateTable {
		if s.dynamo == nil {
			return s, errors.New("--create-table goes with --store dynamodb")
		}
		if err := s.dynamo.Create(ctx); err != nil {
			return s, input.NewUnavailable(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := s.Read(ctx, ratelimit.Key{UserID: " probe", Activity: "probe"}); err != nil {
		return s, input.NewUnavailable(err)
	}
	return s, nil
}

// countsIn names the store.
func (c *serveCommand) countsIn() string {
	switch {
	case c.Fail != "none":
		return "a table that is " + c.Fail + ", because of --fail"
	case c.inMemory():
		return "memory"
	}
	return "the table " + c.table
}

// settings are the variables that lambdafn.ReadSettings reads.
var settings = []string{"MODE", "ON_OUTAGE", "ON_LIMIT", "DECISION_TIMEOUT", "BYPASS_ROLES"}

// variables lists the settings that are set, so that nobody overlooks a
// variable that a shell still has from earlier.
func variables() (set string) {
	for _, name := range settings {
		if value, ok := os.LookupEnv(name); ok {
			set += fmt.Sprintf(", %s=%s", name, value)
		}
	}
	return set
}
