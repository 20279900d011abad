package command

import (
	"net/http"
	"net/url"

	devconsole "github.com/cric-talk/guards/internal/workbench/console"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// withConsole returns the server for api. If other machines can't reach the
// address, the server also has the console. Clock is the guards' clock.
func (c *serveCommand) withConsole(con console, api *invokeapi.Server, clock *devconsole.Clock, address string) *http.Server {
	if !devconsole.Loopback(address) {
		return newServer(api)
	}
	page := &devconsole.Console{
		API: api, Guards: con.guards, Address: address, CountsIn: c.countsIn() + variables(), Clock: clock, Fixed: c.fixedClock(), Wait: wait,
	}
	for name, f := range api.Functions {
		if f.URL { // a guard
			f.Handler = page.Watch(name, f.Handler)
			api.Functions[name] = f
		}
	}
	server := newServer(page)
	server.RegisterOnShutdown(page.Close)
	return server
}

// aboutConsole returns where the console is, or why there is none.
func aboutConsole(address string) string {
	if devconsole.Loopback(address) {
		return "the console for development is at http://" + address + "/; only this machine can open it"
	}
	return "the console is off, because --addr " + address + " is not an address of this machine only, such as 127.0.0.1:3001"
}

// fixedClock returns why the clock can't be moved, or an empty text. Others
// count in a table that is not on this machine, and they don't share the clock.
func (c *serveCommand) fixedClock() string {
	if c.inMemory() {
		return ""
	}
	if u, err := url.Parse(c.address); err == nil && invokeapi.LoopbackHost(u.Hostname()) {
		return ""
	}
	return "The clock can't be moved, because the table is not on this machine."
}
