package httpguard

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
)

// setHeaders adds the fields of draft-ietf-httpapi-ratelimit-headers, as the
// guard's own HTTP form does. The window is not in an answer, and a subject's window
// can be another one. So RateLimit-Policy is added only for the ordinary limit of an
// activity in the client's list. It must be the only limit of the request, and have no
// number from it. A live limit, or a tier that was granted to the user, can have
// another window.
func (m Middleware) setHeaders(h http.Header, r client.Request, d client.Decision) {
	if d.Limit == 0 {
		return
	}
	limits := d.Limits
	if len(limits) == 0 {
		limits = []guards.Figures{{Name: d.Activity, Limit: d.Limit, Remaining: d.Remaining, ResetAt: d.ResetAt}}
	}
	now := answeredAt(d)
	left := make([]string, len(limits))
	for i, l := range limits {
		left[i] = fmt.Sprintf("%q;r=%d;t=%d", l.Name, l.Remaining, max(0, ceilSeconds(l.ResetAt-now)))
	}
	h.Set("RateLimit", strings.Join(left, ", "))
	if known, _ := m.Guards.Find(m.Activity); known.Window != 0 && r.Tier == "" && len(r.Limit) == 0 && len(d.Limits) == 0 {
		h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", d.Activity, d.Limit, ceilSeconds(known.Window.Milliseconds())))
	}
}

// answeredAt returns when the guard decided, in Unix milliseconds of its own clock. This
// machine's clock can differ, so it counts only for an answer without a time, such as that of a
// Client that is not the SDK's own.
func answeredAt(d client.Decision) int64 {
	switch {
	case d.At != 0:
		return d.At
	case !d.Date.IsZero():
		return d.Date.UnixMilli()
	}
	return time.Now().UnixMilli()
}

// ceilSeconds converts milliseconds to seconds, rounded up.
func ceilSeconds(millis int64) int64 { return (millis + 999) / 1000 }

// The bodies that depend on nothing.
const (
	failedBody = `{"title":"Internal Server Error","status":500}`
	outageBody = `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",` +
		`"title":"Unavailable","status":503,"detail":"Please try again later."}`
)

// refuse answers 429 with the guard's answer as a problem.
func refuse(w http.ResponseWriter, d client.Decision) {
	if !tooLow(d) {
		w.Header().Set("Retry-After", strconv.FormatInt(max(1, ceilSeconds(d.WaitTime)), 10))
	}
	problem(w, http.StatusTooManyRequests, refusal(d))
}

// tooLow reports whether the request's own number refused it, so that no wait helps.
func tooLow(d client.Decision) bool { return d.Limit == 0 && d.WaitTime == 0 && len(d.Asked.Limit) > 0 }

// refusal returns the problem of a refusal. It has all fields of the guard's answer. A
// block violates no policy, and neither does a request whose own number is too low: such
// an answer has no figures.
func refusal(d client.Decision) []byte {
	violated, _ := json.Marshal(cmp.Or(d.LimitedBy, d.Activity)) //nolint:errchkjson // a text can't fail
	answer, _ := d.Decision.MarshalJSON()                        // texts and numbers can't fail
	answer = bytes.TrimPrefix(answer, []byte("{"))
	if d.Reason == client.Blocked || tooLow(d) {
		return fmt.Appendf(nil, `{"title":"Too Many Requests","status":429,%s`, answer)
	}
	return fmt.Appendf(nil, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",`+
		`"title":"Too Many Requests","status":429,"violated-policies":[%s],%s`, violated, answer)
}

// problem writes an RFC 9457 problem.
func problem(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// answered lets the app answer, and reports whether it did. Otherwise net/http would send
// 200 for it.
func answered(w http.ResponseWriter, answer func(http.ResponseWriter)) bool {
	own := &watched{ResponseWriter: w}
	answer(own)
	return own.wrote
}

// watched remembers whether something was written.
type watched struct {
	http.ResponseWriter
	wrote bool

	// gone reports whether nobody waits for the answer any more, and sent is called once with
	// the answer's status and what gone said before the headers were sent. Both are nil if
	// nobody wants to know.
	gone func() bool
	sent func(status int, gone bool)
}

// sending is called before the headers are sent.
func (w *watched) sending(status int) { w.headers(status, w.isGone()) }

func (w *watched) isGone() bool { return w.gone != nil && w.gone() }

// headers remembers the headers. Only the first call has an effect.
func (w *watched) headers(status int, gone bool) {
	if w.wrote {
		return
	}
	w.wrote = true
	if w.sent != nil {
		w.sent(status, gone)
	}
}

func (w *watched) Write(b []byte) (int, error) {
	w.sending(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

func (w *watched) WriteHeader(status int) {
	switch {
	case status == http.StatusSwitchingProtocols: // the connection is taken over next
		w.wrote = true
	case status >= 200 && status <= 999: // others only announce an answer, or are none
		w.sending(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// FlushError is for [http.ResponseController]. It sends 200 if nothing was written, unless
// the server can't flush: then the handler can still answer something else.
func (w *watched) FlushError() error {
	gone := w.isGone() // afterwards, a client that has its answer may go
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.headers(http.StatusOK, gone)
	}
	return err
}

// Flush implements [http.Flusher].
func (w *watched) Flush() { _ = w.FlushError() }

// Unwrap is for [http.ResponseController].
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack is for [http.ResponseController].
func (w *watched) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.wrote = w.wrote || err == nil
	return c, rw, err
}
