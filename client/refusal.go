package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// A refusal is an error of Lambda itself. No function has run.
type refusal struct {
	status        int
	code, message string
}

// badCredentials lists Lambda's codes for credentials that it does not accept,
// without the ending "Exception".
var badCredentials = []string{
	"UnrecognizedClient", "InvalidSignature", "SignatureDoesNotMatch", "ExpiredToken", "IncompleteSignature",
	"MissingAuthenticationToken", "InvalidClientTokenId",
}

// lasting lists Lambda's codes with status 502 for what does not pass by itself,
// without the ending "Exception".
var lasting = []string{
	"EC2AccessDenied", "InvalidRuntime", "InvalidSecurityGroupID", "InvalidSubnetID", "InvalidZipFile",
	"KMSAccessDenied", "KMSDisabled", "KMSInvalidState", "KMSNotFound",
}

// passing lists the other codes with status 502, without the ending "Exception".
var passing = []string{"EC2Throttled", "EC2Unexpected", "ENILimitReached", "ResourceNotReady", "SubnetIPAddressLimitReached"}

// refused returns what a refusal means. Only throttling and Lambda's own failures
// are outages. Everything else is a mistake, and a mistake lets nobody through.
func (c *call) refused(r refusal, cause error) error {
	r.code, r.message = c.foreign(r.code), c.foreign(r.message)
	code := strings.TrimSuffix(r.code, "Exception")
	switch {
	case slices.Contains(lasting, code):
		return c.configuration(cause, "Lambda can't run %s: %s. Correct the function: this does not pass by itself.",
			c.function, strings.TrimRight(r.code+": "+r.message, ": ."))
	case c.url != "" && r.status == http.StatusBadGateway && !slices.Contains(passing, code):
		return c.answer("failed: %s. It crashed, can't start or timed out. Its log says why.", r.code)
	case code == "TooManyRequests" || r.status == http.StatusTooManyRequests || r.status >= 500:
		return c.broken(strings.TrimSuffix(r.code+": "+r.message, ": "), cause)
	case slices.Contains(badCredentials, code):
		return c.configuration(cause, "AWS refused the credentials (%s). Renew them, and check this machine's clock.", r.code)
	case c.url == "" && code == "AccessDenied":
		return c.configuration(cause, "The app may not invoke %s in %s. Allow its role the action lambda:InvokeFunction on this function.", c.function, c.region)
	case c.url != "" && r.status == http.StatusForbidden:
		return c.configuration(cause, "The app may not call the URL of %s. Allow its role lambda:InvokeFunctionUrl and lambda:InvokeFunction on this function.", c.function)
	case c.url == "" && code == "ResourceNotFound", c.url != "" && r.status == http.StatusNotFound:
		return c.configuration(cause, "There is no function %s in %s. Deploy it, or check the region and the name.", c.function, c.region)
	}
	return c.notInvoked(cause, r.code+": "+r.message)
}

// notInvoked returns the ErrConfiguration of a call that never reached a guard.
func (c *call) notInvoked(cause error, why string) *Error {
	return c.configuration(cause, "%s could not be invoked: %s", c.function, c.foreign(why))
}

// unreachable returns what an error without any response means. Only what is known to
// pass is an outage.
func (c *call) unreachable(ctx context.Context, err error) error {
	sent, _ := errors.AsType[*sendError](err)
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err // leaves out the address
	}
	why := err.Error()
	switch {
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return c.broken("no answer in time", err)
	case absentHost(err) != "":
		return c.noHost(err)
	case speaksNoHTTP(err):
		why = "no HTTP server answers at this address: " + why
	case isNetwork(err) && !isTLS(err):
		return c.broken(c.foreign(why), err)
	case sent != nil && sent.proxy && !isTLS(err):
		why = "the proxy refused: " + why
	default:
		return c.notInvoked(err, why)
	}
	if sent != nil && sent.spoken {
		return c.broken(c.foreign(why), err)
	}
	return c.notInvoked(err, why)
}

// absentHost returns the name of the host if the name servers answered that it
// does not exist. Name servers that gave no answer are another matter.
func absentHost(err error) string {
	if failed, ok := errors.AsType[*net.DNSError](err); ok && failed.IsNotFound {
		return failed.Name
	}
	return ""
}

// noHost returns an ErrConfiguration. A host that does not exist is usually a
// misspelt region, so it must let nobody through.
func (c *call) noHost(cause error) error {
	check := "the region " + c.region
	op, ok := errors.AsType[*net.OpError](cause)
	switch {
	case ok && op.Op == "proxyconnect":
		check = "the proxy"
	case c.url != "":
		check = "the URL of " + c.function
	case c.region == unknownRegion:
		check = unknownRegion
	}
	return c.configuration(cause, "There is no host %s. Check %s.", absentHost(cause), check)
}

// unreadable returns what it means that a successful response could not be read
// completely.
func (c *call) unreadable(ctx context.Context, err error) error {
	switch {
	case is[*http.MaxBytesError](err):
		return c.answer("answered more than %d KiB, which no guard does. Check the function's name.", maxBytes>>10)
	case ctx.Err() != nil || isNetwork(err):
		return c.broken("the answer broke off", err)
	}
	return c.noAnswer(err.Error())
}

// speaksNoHTTP reports whether the other side answered in another language than HTTP, or
// without the TLS that the address asks for. For example, it is an SSH server.
func speaksNoHTTP(err error) bool {
	text := err.Error()
	return is[tls.RecordHeaderError](err) || strings.Contains(text, "server gave HTTP response to HTTPS client") ||
		strings.Contains(text, "malformed HTTP") || is[textproto.ProtocolError](err) ||
		strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)") // it spoke first
}

// isTLS reports whether the two sides could not agree on a secure connection,
// for example because of the certificate.
func isTLS(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") { // of crypto/tls
		return true
	}
	return is[*tls.CertificateVerificationError](err) || is[tls.AlertError](err) ||
		is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err)
}

// connections lists the errors of the system for a connection that could not be made or
// broke. The numbers are Windows error codes.
var connections = []syscall.Errno{
	syscall.EADDRNOTAVAIL, syscall.ECONNABORTED, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	syscall.EMFILE, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.ENFILE, syscall.ENOBUFS, syscall.EPIPE, syscall.ETIMEDOUT,
	10024, 10049, 10050, 10051, 10053, 10054, 10055, 10060, 10061, 10064, 10065,
}

// isNetwork reports whether the connection could not be made or broke. Other errors of a
// connection are mistakes, such as an invalid port.
func isNetwork(err error) bool {
	if failed, ok := errors.AsType[net.Error](err); ok && failed.Timeout() || is[*net.DNSError](err) {
		return true
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return slices.Contains(connections, number)
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		slices.ContainsFunc([]string{"http2: ", "stream error: stream ID", "connection broken", "server closed idle connection"},
			func(text string) bool { return strings.Contains(err.Error(), text) })
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// statusCode names an HTTP status that came without a code.
func statusCode(status int) string { return fmt.Sprint("HTTP ", status) }
