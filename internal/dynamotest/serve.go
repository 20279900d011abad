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

// answer is a whole response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// summed gives a the checksum of its body, which an SDK checks.
func (a answer) summed() answer {
	a.header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10))
	return a
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	target := r.Header.Get("X-Amz-Target") // DynamoDB_20120810.UpdateItem
	op := target[strings.LastIndexByte(target, '.')+1:]
	fault := p.admit(op)

	var got answer
	if fault.Applied() {
		p.runHooks(p.before, op)
		if fault == UnprocessedStatements && op == "BatchExecuteStatement" {
			got, err = p.forwardSome(r, body)
		} else {
			got, err = p.forward(r, op, body)
		}
		if err != nil {
			http.Error(w, "dynamotest: "+err.Error(), http.StatusBadGateway)
			return
		}
		p.runHooks(p.after, op)
	}
	p.reply(w, r, fault, got)
}

// forward has the table carry out a request and counts what that cost.
func (p *Proxy) forward(r *http.Request, op string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(p.ctx, r.Method, p.backend, bytes.NewReader(askForCapacity(op, body)))
	if err != nil {
		return answer{}, err
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Connection")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read to its end, or failed already
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

// reply gives the client what fault leaves of got.
func (p *Proxy) reply(w http.ResponseWriter, r *http.Request, fault Fault, got answer) {
	half := got.body[:len(got.body)/2]
	switch fault {
	case Refuse, LoseResponse:
		panic(http.ErrAbortHandler) // closes the connection
	case Reset:
		reset(w)
	case HangBefore, HangAfter:
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
	default:
		if made, ok := fault.refusal(); ok {
			got = made
		}
		send(w, got, got.body)
	}
}

// send writes a's head, which announces the whole body, and as much as part.
func send(w http.ResponseWriter, a answer, part []byte) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(part) // a client that has gone needs no answer
	if len(part) < len(a.body) {
		_ = http.NewResponseController(w).Flush()
	}
}

// hang lasts until the client gives up or the test ends.
func (p *Proxy) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-p.ctx.Done():
	}
	panic(http.ErrAbortHandler)
}

// reset ends the connection with an RST in place of a FIN.
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
