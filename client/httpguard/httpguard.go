// Package httpguard puts a guard in front of an http.Handler. A refused request
// gets 429 with the same headers and body as from the guard's own Function URL.
//
//	limit := httpguard.Middleware{
//		Guards:   guards,
//		Activity: "create_post",
//		User:     func(r *http.Request) string { return session(r).UserID },
//	}
//	mux.Handle("POST /posts", limit.Handler(createPost))
//
// If the handler fails, the action stays counted. To give it back, call
// [client.Guards.Guarded] in the handler instead.
package httpguard

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/cric-talk/guards/client"
)

// A Middleware lets a request through if a guard allows it. Guards, Activity and
// User are required.
type Middleware struct {
	Guards   *client.Guards
	Activity string

	// User returns the id of the authenticated user. Never take it from a
	// header that the user's own program can write. An empty id is an error,
	// so that a forgotten log-in does not open the door. To let requests pass
	// without asking, set Skip.
	User func(*http.Request) string

	// Skip reports whether a request passes without asking the guard. Nil
	// means that no request does.
	Skip func(*http.Request) bool

	// Subjects returns the ids of the others in whose limits the activity counts,
	// such as {"room": "r42"}. It must check that the user is in that room. If it is
	// nil, Request's subjects are used.
	Subjects func(*http.Request) map[string]string

	// Request returns further fields of the check, such as the tier. UserID is
	// set by User, and Subjects by Subjects. Nil means none.
	Request func(*http.Request) client.Request

	// OnOutage decides if the guard does not answer, as [client.Request].OnOutage does.
	// If it is empty, Request's OnOutage is used, and then the client's option.
	OnOutage client.OnOutage

	// Refused answers a refused request instead of 429, or 503 in an outage. The
	// RateLimit headers are set already. If it writes nothing, the default answer
	// is sent.
	Refused func(http.ResponseWriter, *http.Request, client.Decision)

	// Failed answers if the guard could not be asked because of a mistake, such
	// as a missing permission. The default logs the error and answers 500. If
	// Failed writes nothing, 500 is sent, too.
	Failed func(http.ResponseWriter, *http.Request, error)
}

// Handler returns a handler that asks the guard and calls next if the user may
// go on. In next, [DecisionFrom] returns the guard's decision.
func (m Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.Skip != nil && m.Skip(r) {
			next.ServeHTTP(w, r)
			return
		}
		request, d, err := m.check(r)
		if err != nil {
			m.fail(w, r, err)
			return
		}
		m.setHeaders(w.Header(), request, d)
		if d.Allowed {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, d)))
			return
		}
		if m.Refused != nil && answered(w, func(w http.ResponseWriter) { m.Refused(w, r, d) }) {
			return
		}
		if d.Outage != nil {
			unavailable(w)
			return
		}
		refuse(w, d)
	})
}

// key is the context key of a decision.
type key struct{}

// DecisionFrom returns the decision that let a request through. It returns
// false if the guard was not asked.
func DecisionFrom(ctx context.Context) (client.Decision, bool) {
	d, ok := ctx.Value(key{}).(client.Decision)
	return d, ok
}

var errNoUser = &client.Error{
	Kind:    client.ErrConfiguration,
	Message: "httpguard: User returned no user id. Authenticate the user first, or let the request pass with Skip.",
}

func (m Middleware) check(r *http.Request) (request client.Request, d client.Decision, err error) {
	if m.Request != nil {
		request = m.Request(r)
	}
	if request.UserID = m.User(r); request.UserID == "" {
		return request, d, errNoUser
	}
	if m.Subjects != nil {
		request.Subjects = m.Subjects(r)
	}
	if m.OnOutage != "" {
		request.OnOutage = m.OnOutage
	}
	d, err = m.Guards.Check(r.Context(), m.Activity, request)
	return request, d, err
}

// fail answers a request about which the guard could not be asked.
func (m Middleware) fail(w http.ResponseWriter, r *http.Request, err error) {
	if m.Failed != nil {
		if !answered(w, func(w http.ResponseWriter) { m.Failed(w, r, err) }) {
			problem(w, http.StatusInternalServerError, []byte(failedBody))
		}
		return
	}
	if r.Context().Err() == nil { // otherwise the user has gone
		slog.ErrorContext(r.Context(), "guards", slog.Any("error", err))
	}
	problem(w, http.StatusInternalServerError, []byte(failedBody))
}
