package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/invokeapi"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type serveCommand struct {
	Addr        string `default:"127.0.0.1:3001" placeholder:"HOST:PORT" help:"Where to listen (${default}). Nobody is asked who they are: keep it on loopback."`
	CreateTable bool   `help:"Make the table first, if it is not there; with --store dynamodb."`
	storeFlags
}

// Help is the command's own help.
func (serveCommand) Help() string {
	return `Every guard and cleanup under Lambda's Invoke API, for an application under
development. The guards read MODE, ON_OUTAGE, ON_LIMIT, DECISION_TIMEOUT and
BYPASS_ROLES as the deployed functions do. Examples:
  guards serve
  MODE=shadow guards serve
  guards serve --store dynamodb --endpoint http://127.0.0.1:8000 --create-table
  aws lambda invoke --endpoint-url http://127.0.0.1:3001 --function-name posts-guard \
    --cli-binary-format raw-in-base64-out \
    --payload '{"userId": "u1", "activity": "create_post"}' answer.json
  curl -d '{"userId": "u1", "activity": "create_post"}' http://127.0.0.1:3001/posts-guard`
}

// As template.yaml has them.
const (
	guardTimeout   = 10 * time.Second
	cleanupTimeout = 300 * time.Second
)

// Run serves until it is interrupted.
func (c *serveCommand) Run(ctx context.Context, con console) error {
	settings, err := lambdafn.ReadSettings(os.LookupEnv)
	if err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := c.prepare(ctx, store); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	api := newAPI(&settings, store, con)
	server := newServer(api)
	_, _ = fmt.Fprintf(con.err, "guards: serving %s on http://%s, counting in %s%s; Ctrl-C ends it\n",
		strings.Join(slices.Sorted(maps.Keys(api.Functions)), ", "), listener.Addr(), c.where(), variables())

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
	return err
}

// newServer makes a server whose Shutdown doesn't wait 5 s for a connection that
// a client has opened, and asked nothing on.
func newServer(h http.Handler) *http.Server {
	var unused sync.Map
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ConnState: func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			unused.Store(c, nil)
		} else {
			unused.Delete(c)
		}
	}}
	s.RegisterOnShutdown(func() {
		unused.Range(func(c, _ any) bool {
			_ = c.(net.Conn).Close()
			return true
		})
	})
	return s
}

// prepare sees to it that the table is there, before anybody counts on it.
func (c *serveCommand) prepare(ctx context.Context, store store) error {
	if c.CreateTable {
		if store.create == nil {
			return errors.New("--create-table goes with --store dynamodb")
		}
		if err := store.create(ctx); err != nil {
			return input.NewUnavailable(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := store.Read(ctx, ratelimit.Key{UserID: " probe", Activity: "probe"}); err != nil {
		return input.NewUnavailable(err)
	}
	return nil
}

// settings are the variables that lambdafn.ReadSettings reads.
var settings = []string{"MODE", "ON_OUTAGE", "ON_LIMIT", "DECISION_TIMEOUT", "BYPASS_ROLES"}

// variables are the settings that are set: one that is left in a shell should
// not go unseen.
func variables() (set string) {
	for _, name := range settings {
		if value, ok := os.LookupEnv(name); ok {
			set += fmt.Sprintf(", %s=%s", name, value)
		}
	}
	return set
}

// newAPI wires every function as internal/lambdafn does, for one process.
func newAPI(settings *lambdafn.Settings, store store, con console) *invokeapi.Server {
	api := &invokeapi.Server{Functions: make(map[string]invokeapi.Function), Observe: con.follow}
	logger := slog.New(invokeapi.LogHandler())
	run := &cleanup.Cleanup{Table: store.table, Now: con.now, Log: logger.With("service", "cleanup")}
	var now *live.Follower // one for all: they run in one process
	if store.live != nil {
		now = &live.Follower{Table: store.live, Guards: limits.All, Log: logger, Now: con.now}
		run.Forget = forget(store.live, con)
	}
	for _, rules := range limits.All {
		g := settings.Guard(rules, store)
		g.Log, g.Limiter.Now = logger.With("service", rules.Name), con.now
		g.Live, g.Limiter.Alongside = now, now.Look
		api.Functions[rules.Name] = invokeapi.Function{URL: true, Timeout: guardTimeout, Handler: g}
	}
	api.Functions["cleanup"] = invokeapi.Function{Timeout: cleanupTimeout, Handler: run}
	return api
}

// follow writes a line on an invocation that a person can follow.
func (c console) follow(i invokeapi.Invocation) {
	var a struct {
		Activity, Op, Reason, Body string
		Allowed                    bool
		ActivityCount, Limit       int64
		WaitTime                   int64
	}
	_ = json.Unmarshal(i.Payload, &a)
	if a.Body != "" { // of HTTP
		_ = json.Unmarshal([]byte(a.Body), &a)
	}
	said := strings.TrimSpace(string(i.Payload))
	switch {
	case i.Err != nil:
		said = c.paint(red, "error") + " " + i.Err.Error()
	case a.Reason != "":
		said = fmt.Sprintf("%s %s: %s, %s", a.Op, a.Activity, c.verdict(a.Allowed, a.Reason), a.Reason)
		if a.Limit > 0 {
			said += fmt.Sprintf(", %d/%d used", a.ActivityCount, a.Limit)
		}
		if a.WaitTime > 0 {
			said += ", wait " + wait(time.Duration(a.WaitTime)*time.Millisecond)
		}
	}
	_, _ = fmt.Fprintf(c.err, "%s  %-18s  %s\n", c.now().Format(time.TimeOnly), i.Function, said)
}
