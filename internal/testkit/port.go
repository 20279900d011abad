package testkit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// A Port is a server at one address, which need not speak HTTP. What it speaks can change.
type Port struct {
	listen net.Listener
	speaks atomic.Value // func(net.Conn)
}

// OpenPort starts a Port. It is closed when the test ends.
func OpenPort(t testing.TB) *Port {
	t.Helper()
	p := &Port{listen: Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)}
	t.Cleanup(func() { _ = p.listen.Close() })
	go func() {
		for {
			c, err := p.listen.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				p.speaks.Load().(func(net.Conn))(c)
			}()
		}
	}()
	return p
}

// Addr returns the port's HOST:PORT.
func (p *Port) Addr() string { return p.listen.Addr().String() }

// Speak sets what the port does with each connection, which it closes afterwards.
func (p *Port) Speak(with func(net.Conn)) { p.speaks.Store(with) }

// SpeaksFirst writes a text before it reads, and then nothing, as an SSH server does.
func SpeaksFirst(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

// Replies reads a request, or the beginning of a handshake, and writes a text.
func Replies(text string) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		if first, err := r.Peek(1); err == nil && 'A' <= first[0] && first[0] <= 'Z' { // otherwise it is a handshake
			if request, err := http.ReadRequest(r); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
			}
		}
		_, _ = io.WriteString(c, text)
	}
}

// Silent reads, and never writes.
func Silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
