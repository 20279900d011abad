package command

import (
	"net/http"

	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// besideApp answers a request with the header Guards-Token as an agent does, and leaves the
// others to rest. So an app that asks an agent can be tried without one. Token is
// GUARDS_AGENT_TOKEN.
func besideApp(api *invokeapi.Server, env session, token string, rest http.Handler) http.Handler {
	agent := &agentd.Handler{Guards: map[string]agentd.Guard{}, GuardOf: map[string]string{}, Token: token}
	for _, g := range env.guards {
		agent.Guards[g.Name] = api.Beside(g.Name)
		for _, a := range g.Activities {
			agent.GuardOf[a.Name] = g.Name
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Values(agentd.TokenHeader) == nil {
			rest.ServeHTTP(w, r)
			return
		}
		agent.ServeHTTP(w, r)
	})
}
