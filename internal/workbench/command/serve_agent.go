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
	agent := &agentd.Handler{Token: token}
	for _, g := range env.guards {
		agent.Add(g, api.Beside(g.Name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Values(agentd.TokenHeader) == nil {
			rest.ServeHTTP(w, r)
			return
		}
		agent.ServeHTTP(w, r)
	})
}
