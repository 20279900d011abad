package dynamotest

import (
	"bytes"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// checksum is the header with the CRC-32 of the body.
const checksum = "X-Amz-Crc32"

// summed returns a with the checksum of its body, which SDKs check.
func (a answer) summed() answer {
	a.header.Set(checksum, strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10))
	return a
}

// operation returns the operation that a request names in its header, such as
// UpdateItem for DynamoDB_20120810.UpdateItem.
func operation(r *http.Request) string {
	target := r.Header.Get("X-Amz-Target")
	return target[strings.LastIndexByte(target, '.')+1:]
}

// serve handles one request: it decides on a fault, calls the hooks and
// forwards the request if the fault lets it through.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	op := operation(r)
	fault, attempt := p.faultOf(r, op)
	defer attempt.seal()
	if attempt != nil {
		attempt.body.Store(&body)
	}

	var got answer
	if fault == Late && attempt != nil {
		attempt.deliver = func() error { _, err := p.forward(r, op, body); return err }
	} else if fault.Applied() {
		p.runHooks(op)
		if fault == UnprocessedStatements && op == "BatchExecuteStatement" {
			got, err = p.forwardSome(r, body)
		} else {
			got, err = p.forward(r, op, body)
		}
		if err != nil {
			http.Error(w, "dynamotest: "+err.Error(), http.StatusBadGateway)
			return
		}
	}
	attempt.seal()
	p.reply(w, r, fault, got)
}

// forward sends a request to the table and counts the capacity that it used.
func (p *Proxy) forward(r *http.Request, op string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(p.ctx, r.Method, p.backend, bytes.NewReader(askForCapacity(op, body)))
	if err != nil {
		return answer{}, err
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Connection")
	req.Header.Del(attemptHeader)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read completely, or reading it failed
	got := answer{status: resp.StatusCode, header: resp.Header}
	if got.body, err = io.ReadAll(resp.Body); err != nil {
		return answer{}, err
	}
	used := unitsOf(op, body, got.body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.units.read += used.read
	p.units.write += used.write
	return got, nil
}

// reply sends got to the client, or what the fault leaves of it.
func (p *Proxy) reply(w http.ResponseWriter, r *http.Request, fault Fault, got answer) {
	half := got.body[:len(got.body)/2]
	switch fault {
	case Refuse, LoseResponse:
		panic(http.ErrAbortHandler) // closes the connection
	case Reset, ResetBefore:
		reset(w)
	case HangBefore, HangAfter, Late:
		p.hang(r)
	case Truncate:
		send(w, got, half)
		panic(http.ErrAbortHandler)
	case Stall:
		send(w, got, half)
		p.hang(r)
	case Garbage:
		got.body = half
		send(w, got.summed(), half)
	case BadChecksum:
		got.header = got.header.Clone()
		got.header.Set(checksum, strconv.FormatUint(uint64(crc32.ChecksumIEEE(got.body)^1), 10))
		send(w, got, got.body)
	default:
		if made, ok := fault.refusal(); ok {
			got = made
		}
		send(w, got, got.body)
	}
}

// send writes the header of a, which announces the whole body, and then part of
// the body.
func send(w http.ResponseWriter, a answer, part []byte) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(part) // an error means that the client has gone
	if len(part) < len(a.body) {
		_ = http.NewResponseController(w).Flush()
	}
}

// hang waits until the client gives up or the test ends, and closes the
// connection.
func (p *Proxy) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-p.ctx.Done():
	}
	panic(http.ErrAbortHandler)
}

// reset ends the connection with an RST instead of a FIN.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
