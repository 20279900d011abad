package testkit

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
)

// A Stream collects what a program writes. A test can read it at the same time.
type Stream struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// String returns what was written until now.
func (s *Stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// DefaultLog returns what package slog logs by default until the test ends.
func DefaultLog(t testing.TB) *Stream {
	t.Helper()
	s, before := new(Stream), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(s, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return s
}
