package console

import (
	"fmt"
	"mime"
	"net"
	"net/http"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// policyOfPage lets the page load only what this server serves. Nobody may frame
// the page, and no script may turn a text into HTML.
const policyOfPage = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// own serves a path of the page. It refuses what another site may have sent.
func (c *Console) own(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policyOfPage)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if why := c.refusal(r); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPost {
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				http.Error(w, "The console accepts only JSON: send Content-Type: application/json.", http.StatusUnsupportedMediaType)
				return
			}
		}
		serve(w, r)
	}
}

// refusal returns why a request is not for the page, or an empty text.
func (c *Console) refusal(r *http.Request) string {
	if !c.isLocal(r.Host) {
		return fmt.Sprintf("The console answers only on http://%s. The Host of this request is %s.", c.Address, input.Show(r.Host))
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 && r.Method != http.MethodPost {
		return "" // a browser sends no Origin if a person opens the page
	}
	if len(origins) != 1 || origins[0] != "http://"+r.Host {
		return fmt.Sprintf("The console answers only its own page. The Origin of this request is %s, want http://%s.", input.Show(r.Header.Get("Origin")), r.Host)
	}
	return ""
}

// isLocal reports whether a Host names this machine and the server's port.
func (c *Console) isLocal(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // there is no port
		name, port = host, "80"
	}
	_, own, _ := net.SplitHostPort(c.Address)
	return port == own && invokeapi.LoopbackHost(name)
}
