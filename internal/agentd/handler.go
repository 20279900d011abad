package agentd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/retry"
)

const (
	// Mark is in the header of each answer, so that a client can tell an agent from another
	// program that has its port.
	Mark = "Guards-Agent"

	// TokenHeader must be in each POST. An attacker who talks an app into a request, such as by
	// the URL of a webhook, can rarely choose its headers.
	TokenHeader = "Guards-Token"

	// NoToken is what clients send if no token is configured.
	NoToken = "local"

	maxBody = 64 << 10         // bytes; as in a guard's answer to its caller
	arrival = 10 * time.Second // for a body
)

// A Guard answers the body of a POST as its Function URL does.
type Guard interface {
	Respond(ctx context.Context, body []byte) guard.Response
}

// A Handler is the HTTP form of guards on this machine. It is an http.Handler. The zero Handler
// answers for no guard: see Add.
type Handler struct {
	Token    string // who sends it gets in; empty: who sends NoToken does
	AnyToken bool   // the token itself is the mistake, so each is let in to hear of it
	Private  bool   // no other program's page reaches the listener, so the Host may be any: it is a socket

	// Mistake is why no guard can decide, or nil. Each POST is then answered 500.
	Mistake error

	// Panicked is called with each panic. Nil means that nobody wants to know.
	Panicked func(value any, stack []byte)

	guards  map[string]Guard  // by name
	guardOf map[string]string // the name of an activity's guard
}

// Add lets answers answer for the guard g and its activities.
func (h *Handler) Add(g limits.Guard, answers Guard) {
	if h.guards == nil {
		h.guards, h.guardOf = map[string]Guard{}, map[string]string{}
	}
	h.guards[g.Name] = answers
	for _, a := range g.Activities {
		h.guardOf[a.Name] = g.Name
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(Mark, "1")
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(value)
		}
		if h.Panicked != nil {
			h.Panicked(value, debug.Stack())
		}
		write(w, guard.Problem(http.StatusInternalServerError, "the agent failed: its log says why"))
	}()
	write(w, h.answer(w, r))
}

func write(w http.ResponseWriter, r guard.Response) {
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // an error means that the caller is gone
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request) guard.Response {
	if why := h.foreign(r); why != "" {
		return guard.Problem(http.StatusForbidden, why)
	}
	if r.Method == http.MethodPost {
		if why := h.stranger(r); why != "" {
			return guard.Problem(http.StatusForbidden, why)
		}
		if h.Mistake != nil {
			return guard.Problem(http.StatusInternalServerError, h.Mistake.Error())
		}
	}
	g, known := h.guards[strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/")]
	switch {
	case r.URL.Path == "/health" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return h.health()
	case r.URL.Path == "/health":
		return notAllowed(r.Method, http.MethodGet)
	case !known && r.URL.Path != "/": // there, the activity tells
		return guard.Problem(http.StatusNotFound, "the path is "+input.Show(r.URL.Path)+", want /, /health or the name of a guard such as /posts-guard")
	case r.Method != http.MethodPost:
		return notAllowed(r.Method, http.MethodPost)
	case !isJSON(r.Header):
		return guard.Problem(http.StatusUnsupportedMediaType, "Content-Type is "+input.Show(r.Header.Get("Content-Type"))+", want application/json")
	}
	body, tooLong := read(w, r)
	if tooLong {
		return guard.Problem(http.StatusRequestEntityTooLarge, "the body has more than 64 KiB")
	}
	// The decision goes on if the caller closes the connection: what it has begun to count, it
	// must be able to give back.
	ctx := context.WithoutCancel(r.Context())
	if g == nil {
		activity, err := guard.ActivityOf(body)
		if err != nil {
			return guard.ProblemOf(err)
		}
		if g = h.guards[h.guardOf[activity]]; g == nil {
			return guard.ProblemOf(input.Invalid("activity", input.Show(activity), "one that the page of limits names"))
		}
	}
	return g.Respond(ctx, body)
}

// foreign returns why a request can be of a page in a browser, or an empty text. Such a page
// can point its own name at this machine (DNS rebinding), and then it is no foreign site to
// the browser. It knows no token, so with one the Host may be any.
func (h *Handler) foreign(r *http.Request) string {
	switch {
	case len(r.Header["Origin"]) > 0:
		return "the request has an Origin, so a browser sent it"
	case len(r.Header["Sec-Fetch-Site"]) > 0:
		return "the request has a Sec-Fetch-Site, so a browser sent it"
	case !h.Private && h.Token == "" && !local.MatchString(strings.ToLower(r.Host)):
		return "the Host is " + input.Show(r.Host) + ", want localhost, 127.0.0.1 or [::1]; for another one, set GUARDS_AGENT_TOKEN"
	}
	return ""
}

// local matches a Host that is one of this machine's own names, in lower case.
var local = regexp.MustCompile(`^(localhost|127\.0\.0\.1|\[::1\])(:\d*)?$`)

// stranger returns why a request has not the token, or an empty text. Its time tells nothing
// about the token.
func (h *Handler) stranger(r *http.Request) string {
	sent := r.Header[TokenHeader]
	if len(sent) != 1 {
		return "the request has no header Guards-Token: each POST needs it once"
	}
	if h.AnyToken && h.Mistake != nil {
		return ""
	}
	a, b := sha256.Sum256([]byte(sent[0])), sha256.Sum256([]byte(cmp.Or(h.Token, NoToken)))
	if subtle.ConstantTimeCompare(a[:], b[:]) == 1 {
		return ""
	}
	if h.Token == "" {
		return "the Guards-Token is wrong: no token is configured here, so it is the word local"
	}
	return "the Guards-Token is wrong: want the GUARDS_AGENT_TOKEN of the agent"
}

func (h *Handler) health() guard.Response {
	if h.Mistake != nil {
		return guard.Problem(http.StatusServiceUnavailable, h.Mistake.Error())
	}
	return guard.Response{Status: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: []byte(`{"status":"ok","version":` + strconv.Quote(release()) + `}`)}
}

func notAllowed(method, want string) guard.Response {
	r := guard.Problem(http.StatusMethodNotAllowed, "method is "+input.Show(method)+", want "+want)
	r.Header["Allow"] = want
	return r
}

func isJSON(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "application/json" && len(header["Content-Type"]) == 1
}

// read returns the body, or true if it is too long. A body that does not arrive ends the
// connection. Its time is the time that this process runs: Lambda can freeze the app, too, in
// the middle of a request.
func read(w http.ResponseWriter, r *http.Request) (body []byte, tooLong bool) {
	control := http.NewResponseController(w)
	ctx, stop := retry.Awake(r.Context(), arrival)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Now()) })()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLong = errors.AsType[*http.MaxBytesError](err); err != nil && !tooLong {
		panic(http.ErrAbortHandler)
	}
	return body, tooLong
}
