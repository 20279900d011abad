package replay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A spool keeps requests outside of memory, so that they can be decided many
// times without parsing their files again. A request takes about 5 bytes: the
// user's number and the milliseconds since the request before it.
type spool struct {
	file   io.ReadWriteSeeker
	w      *bufio.Writer
	buffer []byte
	last   int64

	numbers  map[string]int
	users    []string
	requests []int64 // of each user
}

func newSpool(file io.ReadWriteSeeker) *spool {
	return &spool{file: file, w: bufio.NewWriterSize(file, 1<<16), numbers: make(map[string]int)}
}

// add writes a request.
func (s *spool) add(line traffic.Line) error {
	n, ok := s.numbers[line.User]
	if !ok {
		n = len(s.users)
		s.numbers[line.User] = n
		s.users, s.requests = append(s.users, line.User), append(s.requests, 0)
	}
	s.requests[n]++
	s.buffer = binary.AppendVarint(binary.AppendUvarint(s.buffer[:0], uint64(n)), line.Time-s.last)
	s.last = line.Time
	_, err := s.w.Write(s.buffer)
	return err
}

// each reads all requests from the first one on, until do returns an error.
func (s *spool) each(do func(user int, at int64) error) error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, at := bufio.NewReaderSize(s.file, 1<<16), int64(0)
	for {
		user, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		later, err := binary.ReadVarint(r)
		if err != nil {
			return err
		}
		at += later
		if err := do(int(user), at); err != nil {
			return err
		}
	}
}
