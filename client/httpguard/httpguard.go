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
// [client.Guards.Guarded] in the handler instead, or decide by the response with CountIf.
package httpguard

import (
	"cmp"
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

	// Limit returns the numbers of the request's limits, such as what the customer has bought; see
	// [client.Request].Limit. It never takes them from what the user sent. If it is nil, Request's
	// Limit is used.
	Limit func(*http.Request) client.Numbers

	// Request returns further fields of the check, such as the tier. UserID is
	// set by User, Subjects by Subjects, and Limit by Limit. Nil means none.
	Request func(*http.Request) client.Request

	// OnOutage decides if the guard does not answer, as [client.Request].OnOutage does.
	// If it is empty, Request's OnOutage is used, and then the client's option.
	OnOutage client.OnOutage

	// CountIf reports whether a response with this status counts. If it is nil, each
	// request that was allowed counts. It is asked once, when the headers are sent:
	//
	//	CountIf: func(status int) bool { return status == http.StatusUnauthorized }
	//
	// gives each other action back, as [client.Guards.Attempt] does after a success. Without
	// asking, the action stays counted if next panics before that, if it takes over the
	// connection, or if the client has gone. It also stays counted if CountIf panics, which is
	// logged with log/slog. The request may have Clear and OnLocked. With RequestID or Count,
	// it fails with a [client.ErrConfiguration].
	CountIf func(status int) bool

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
		request, err := m.request(r)
		if err != nil {
			m.fail(w, r, err)
			return
		}
		d, attempt, err := m.check(r.Context(), request)
		if err != nil {
			m.fail(w, r, err)
			return
		}
		m.setHeaders(w.Header(), request, d)
		if d.Allowed {
			r = r.WithContext(context.WithValue(r.Context(), key{}, d))
			if attempt != nil {
				m.serve(w, r, next, attempt)
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		if m.Refused != nil && answered(w, func(w http.ResponseWriter) { m.Refused(w, r, d) }) {
			return
		}
		if d.Outage != nil {
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusServiceUnavailable, []byte(outageBody))
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

var errOwnID = &client.Error{
	Kind:    client.ErrConfiguration,
	Message: "httpguard: RequestID and Count don't go with CountIf, because an attempt is one action with an id of its own.",
}

// request returns what the guard is asked.
func (m Middleware) request(r *http.Request) (request client.Request, err error) {
	if m.Request != nil {
		request = m.Request(r)
	}
	if request.UserID = m.User(r); request.UserID == "" {
		return request, errNoUser
	}
	if m.CountIf != nil && (request.RequestID != "" || request.Count != 0) {
		return request, errOwnID
	}
	if m.Subjects != nil {
		request.Subjects = m.Subjects(r)
	}
	if m.Limit != nil {
		request.Limit = m.Limit(r)
	}
	request.OnOutage = cmp.Or(m.OnOutage, request.OnOutage)
	return request, nil
}

// check asks the guard. With CountIf, the action is an attempt; otherwise attempt is nil.
func (m Middleware) check(ctx context.Context, request client.Request) (d client.Decision, attempt *client.Attempt, err error) {
	if m.CountIf == nil {
		d, err = m.Guards.Check(ctx, m.Activity, request)
		return d, nil, err
	}
	if attempt, err = m.Guards.BeginAttempt(ctx, m.Activity, request); err != nil {
		return d, nil, err
	}
	return attempt.Decision, attempt, nil
}

// serve lets next answer, and gives the attempt back unless the response counts.
func (m Middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler, attempt *client.Attempt) {
	defer attempt.Failed() // if nothing else has ended it
	own := &watched{
		ResponseWriter: w,
		gone:           func() bool { return r.Context().Err() != nil },
		sent: func(status int, gone bool) {
			if gone || m.counts(r.Context(), status) { // for nobody, next may answer as if all were well
				attempt.Failed()
				return
			}
			attempt.Succeeded(r.Context())
		},
	}
	next.ServeHTTP(own, r)
	own.sending(http.StatusOK) // net/http sends it if next wrote nothing
}

// counts is CountIf, and true if that panics.
func (m Middleware) counts(ctx context.Context, status int) (counts bool) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "guards: CountIf panicked", slog.Any("panic", p))
			counts = true
		}
	}()
	return m.CountIf(status)
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
