package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/invokeapi"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// newAPI wires every function as package lambdafn does, in one process.
func newAPI(settings *lambdafn.Settings, store store, con console) *invokeapi.Server {
	api := &invokeapi.Server{Functions: make(map[string]invokeapi.Function), Observe: con.follow}
	logger := slog.New(invokeapi.LogHandler())
	run := &cleanup.Cleanup{Table: store.table, Live: store.live, Now: con.now, Log: logger.With("service", "cleanup")}
	var changed *live.Follower // all guards share it, because they run in one process
	if store.live != nil {
		changed = &live.Follower{Table: store.live, Guards: limits.All, Log: logger, Now: con.now}
	}
	for _, g := range limits.All {
		h := settings.Handler(g, store)
		h.Log, h.Limiter.Now, h.Live = logger.With("service", g.Name), con.now, changed
		api.Functions[g.Name] = invokeapi.Function{URL: true, Timeout: guardTimeout, Handler: h}
	}
	api.Functions["cleanup"] = invokeapi.Function{Timeout: cleanupTimeout, Handler: run}
	return api
}

// newServer returns a server whose Shutdown closes unused connections at once.
// [http.Server] alone waits 5 s for a connection on which no request has
// arrived.
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

// follow writes a line about an invocation for people.
func (c console) follow(i invokeapi.Invocation) {
	var a struct {
		Activity, Op, Reason, Body string
		Allowed                    bool
		ActivityCount, Limit       int64
		WaitTime                   int64
	}
	_ = json.Unmarshal(i.Payload, &a)
	if a.Body != "" { // the answer is inside an HTTP response
		_ = json.Unmarshal([]byte(a.Body), &a)
	}
	text := strings.TrimSpace(string(i.Payload))
	switch {
	case i.Err != nil:
		text = c.paint(red, "error") + " " + i.Err.Error()
	case a.Reason != "":
		text = fmt.Sprintf("%s %s: %s, %s", a.Op, a.Activity, c.verdict(a.Allowed, a.Reason), a.Reason)
		if a.Limit > 0 {
			text += fmt.Sprintf(", %d/%d used", a.ActivityCount, a.Limit)
		}
		if a.WaitTime > 0 {
			text += ", wait " + waitMs(a.WaitTime)
		}
	}
	_, _ = fmt.Fprintf(c.err, "%s  %-18s  %s\n", c.now().Format(time.TimeOnly), i.Function, text)
}
