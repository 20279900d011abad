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
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/event"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/invokeapi"
	"github.com/cric-talk/guards/internal/limits"
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
development. Examples:
  guards serve
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
	api := newAPI(store, con)
	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	_, _ = fmt.Fprintf(con.err, "guards: serving %s on http://%s, counting in %s; Ctrl-C ends it\n",
		strings.Join(slices.Sorted(maps.Keys(api.Functions)), ", "), listener.Addr(), c.where())

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

// prepare sees to it that the table is there, before anybody counts on it.
func (c *serveCommand) prepare(ctx context.Context, store store) error {
	if c.CreateTable {
		table, ok := store.(interface{ Create(context.Context) error })
		if !ok {
			return errors.New("--create-table goes with --store dynamodb")
		}
		if err := table.Create(ctx); err != nil {
			return event.NewUnavailable(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := store.Read(ctx, ratelimit.Key{UserID: " probe"}); err != nil {
		return event.NewUnavailable(err)
	}
	return nil
}

// newAPI wires every function as internal/lambdafn does, for one process.
func newAPI(store store, con console) *invokeapi.Server {
	api := &invokeapi.Server{Functions: make(map[string]invokeapi.Function), Observe: con.follow}
	logger := slog.New(invokeapi.LogHandler())
	cache := ratelimit.NewCache(ratelimit.DefaultCacheSize)
	for _, rules := range limits.All {
		api.Functions[rules.Name] = invokeapi.Function{URL: true, Timeout: guardTimeout, Handler: &guard.Guard{
			Rules:       rules,
			Limiter:     &ratelimit.Limiter{Store: store, Cache: cache, Timeout: time.Second},
			BypassRoles: []string{"admin"},
			Log:         logger.With("service", rules.Name),
		}}
	}
	api.Functions["cleanup"] = invokeapi.Function{Timeout: cleanupTimeout, Handler: &cleanup.Cleanup{
		Table: store, Log: logger.With("service", "cleanup"),
	}}
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
		verdict := c.paint(green, "allowed")
		if !a.Allowed {
			verdict = c.paint(red, "refused")
		}
		said = fmt.Sprintf("%s %s: %s, %s", a.Op, a.Activity, verdict, a.Reason)
		if a.Limit > 0 {
			said += fmt.Sprintf(", %d/%d used", a.ActivityCount, a.Limit)
		}
		if a.WaitTime > 0 {
			said += ", wait " + wait(time.Duration(a.WaitTime)*time.Millisecond)
		}
	}
	_, _ = fmt.Fprintf(c.err, "%s  %-18s  %s\n", time.Now().Format(time.TimeOnly), i.Function, said)
}
