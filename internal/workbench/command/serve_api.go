package command

import (
	"log/slog"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// newAPI wires every function as package lambdafn does, in one process.
func newAPI(settings *lambdafn.Settings, store store, con console, observe func(invokeapi.Invocation)) *invokeapi.Server {
	api := &invokeapi.Server{Functions: make(map[string]invokeapi.Function), Observe: observe}
	logger := slog.New(invokeapi.LogHandler())
	run := &cleanup.Cleanup{Table: store.table, Live: store.live, Now: con.now, Log: logger.With("service", "cleanup")}
	var changed *live.Follower // all guards share it, because they run in one process
	if store.live != nil {
		changed = &live.Follower{Table: store.live, Guards: con.guards, Log: logger, Now: con.now}
	}
	for _, g := range con.guards {
		h := settings.Handler(g, store)
		h.Log, h.Limiter.Now, h.Live = logger.With("service", g.Name), con.now, changed
		api.Functions[g.Name] = invokeapi.Function{URL: true, Timeout: guardTimeout, Handler: h}
	}
	api.Functions["cleanup"] = invokeapi.Function{Timeout: cleanupTimeout, Handler: run}
	return api
}
