package invokeapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/cric-talk/guards/internal/input"
)

// isForeign reports whether a browser sent a request for another website. That
// site could not read the answer, but the function would have run. Another site
// can also point its own name to this machine (DNS rebinding), so an Origin must
// be of this machine. A backend and an SDK send no Origin.
func (s *Server) isForeign(r *http.Request) bool {
	if s.foreign.Check(r) != nil {
		return true
	}
	origin := r.Header.Get("Origin")
	from, err := url.Parse(origin)
	return origin != "" && (err != nil || !LoopbackHost(from.Hostname()))
}

// refuse answers a request of another website.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r.URL.Path, http.StatusForbidden, "AccessDeniedException", fmt.Sprintf(
		"A browser sent this request for the site %s. The functions answer backends, and pages of this server.", input.Show(r.Header.Get("Origin"))))
}

// LoopbackHost reports whether a host's name or address is of this machine only.
func LoopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
